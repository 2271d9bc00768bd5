//! Decompresses a WARC file and reports where its members are.
//!
//! A member is a gzip member (RFC 1952) or a zstd frame (RFC 8878); a plain file has none. A zstd file may start with
//! its dictionary in a skippable frame, itself compressed or not (IIPC, "Zstandard compression for WARC files 1.0").
//! Every other skippable frame is ignored.

use std::io::{self, Read};

use flate2::{Decompress, FlushDecompress, Status};
use zstd::zstd_safe::{self, DCtx, DParameter, InBuffer, OutBuffer};

use super::input::Input;

/// Compression of a WARC file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Not compressed.
    Plain,
    /// gzip, as in ISO 28500 annex D.
    Gzip,
    /// zstd, as in the IIPC proposal.
    Zstd,
}

/// First bytes of a zstd frame.
pub(crate) const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// First bytes of a deflated gzip member.
const GZIP_MAGIC: [u8; 3] = [0x1f, 0x8b, 0x08];
/// Lowest of the 16 magic numbers of skippable frames (RFC 8878 section 3.1.2).
pub(crate) const SKIPPABLE_MAGIC: u32 = 0x184d_2a50;
/// The skippable frame at a file's start that holds its dictionary.
pub const SKIPPABLE_DICTIONARY: u32 = 0x184d_2a5d;
/// Maximum bytes of a dictionary, packed or not, that is accepted: twice what the proposal requires of readers.
const DICTIONARY_READ_BYTES_MAX: usize = 16 << 20;
/// Bytes unpacked at a time.
const STEP_BYTES: usize = 32 << 10;

impl Packing {
    fn of(start: &[u8]) -> Self {
        if start.starts_with(&GZIP_MAGIC) {
            Self::Gzip
        } else if start.starts_with(&ZSTD_MAGIC) || skippable_number(start).is_some() {
            Self::Zstd
        } else {
            Self::Plain
        }
    }
}

fn skippable_number(start: &[u8]) -> Option<u32> {
    let number = u32::from_le_bytes(start.first_chunk().copied()?);
    (number & 0xffff_fff0 == SKIPPABLE_MAGIC).then_some(number)
}

/// Wraps less than 4 GiB in a skippable frame.
pub(crate) fn skippable_frame(number: u32, content: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(content.len() + 8);
    frame.extend_from_slice(&number.to_le_bytes());
    frame.extend_from_slice(&(content.len() as u32).to_le_bytes());
    frame.extend_from_slice(content);
    frame
}

/// Returns the dictionary in a skippable frame's content: the content itself or what it unpacks to.
pub(crate) fn embedded_dictionary(content: &[u8]) -> Result<Vec<u8>, String> {
    if !content.starts_with(&ZSTD_MAGIC) {
        return Ok(content.to_vec());
    }
    // The capacity limits the output of a hostile frame.
    let mut dictionary = Vec::with_capacity(match zstd_safe::get_frame_content_size(content) {
        Ok(Some(size)) if size <= DICTIONARY_READ_BYTES_MAX as u64 => size as usize,
        _ => DICTIONARY_READ_BYTES_MAX,
    });
    match zstd_safe::decompress(&mut dictionary, content) {
        Ok(_) => Ok(dictionary),
        Err(code) => Err(format!("the dictionary cannot be unpacked: {}", zstd_safe::get_error_name(code))),
    }
}

/// Result of one step of unpacking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unpacked {
    /// Some bytes, perhaps none, were appended.
    Data,
    /// A member starts at this offset.
    Start(u64),
    /// The member ended before this offset.
    End(u64),
    /// The file has ended.
    Finished,
}

#[derive(Debug)]
pub(super) enum UnpackError {
    Io(io::Error),
    /// The bytes are damaged; [`Unpacker::resume`] continues after them.
    Corrupt(String),
    /// The file ends within a member, whose bytes so far are right.
    Ended(&'static str),
}

impl From<io::Error> for UnpackError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

pub(super) struct Unpacker<R> {
    input: Input<R>,
    codec: UnpackCodec,
    inside: bool,
    /// Start of the current or last member.
    member_start: u64,
    at_file_start: bool,
    /// log2 of the largest window that a zstd frame may need.
    window_log_max: u32,
}

/// log2 of the window limits that zstd accepts: at least 2^10 bytes, at most 2^27 by default.
const WINDOW_LOGS: std::ops::RangeInclusive<u32> = 10..=27;

/// A gzip decompressor and its output buffer. Given a vector, it would clear all the spare capacity before every step,
/// which took a third of an import's time.
struct Inflater {
    member: Decompress,
    output: [u8; STEP_BYTES],
}

enum UnpackCodec {
    Unknown(Option<Vec<u8>>),
    Plain,
    Gzip(Box<Inflater>),
    Zstd(DCtx<'static>),
}

impl<R: Read> Unpacker<R> {
    /// Unpacks a file from its start.
    pub(super) fn new(source: R) -> Self {
        let (input, codec) = (Input::new(source, 0), UnpackCodec::Unknown(None));
        Self {
            input,
            codec,
            inside: false,
            member_start: 0,
            at_file_start: true,
            window_log_max: *WINDOW_LOGS.end(),
        }
    }

    /// Unpacks a file from the member at `offset`.
    pub(super) fn resumed(source: R, offset: u64, dictionary: Option<Vec<u8>>) -> Self {
        let codec = UnpackCodec::Unknown(dictionary);
        Self {
            input: Input::new(source, offset),
            codec,
            inside: false,
            member_start: offset,
            at_file_start: false,
            window_log_max: *WINDOW_LOGS.end(),
        }
    }

    /// Limits the window that a zstd frame may need; call it before anything is unpacked.
    pub(super) fn limit_window(&mut self, bytes: u64) {
        self.window_log_max = bytes.max(1).ilog2().clamp(*WINDOW_LOGS.start(), *WINDOW_LOGS.end());
    }

    pub(super) fn position(&self) -> u64 {
        self.input.position()
    }

    pub(super) fn packing(&mut self) -> Result<Packing, UnpackError> {
        self.detect()?;
        Ok(match self.codec {
            UnpackCodec::Gzip(_) => Packing::Gzip,
            UnpackCodec::Zstd(_) => Packing::Zstd,
            UnpackCodec::Plain | UnpackCodec::Unknown(_) => Packing::Plain,
        })
    }

    fn detect(&mut self) -> Result<(), UnpackError> {
        let UnpackCodec::Unknown(dictionary) = &mut self.codec else { return Ok(()) };
        let dictionary = dictionary.take();
        self.codec = match Packing::of(self.input.fill_to(4)?) {
            Packing::Plain => UnpackCodec::Plain,
            Packing::Gzip => UnpackCodec::Gzip(Box::new(Inflater {
                member: Decompress::new_gzip(15),
                output: [0; STEP_BYTES],
            })),
            Packing::Zstd => {
                let mut context = DCtx::create();
                context.set_parameter(DParameter::WindowLogMax(self.window_log_max)).map_err(corrupt)?;
                UnpackCodec::Zstd(context)
            }
        };
        match dictionary {
            Some(dictionary) => self.load(&dictionary),
            None => Ok(()),
        }
    }

    fn load(&mut self, dictionary: &[u8]) -> Result<(), UnpackError> {
        let UnpackCodec::Zstd(context) = &mut self.codec else { return Ok(()) };
        context.load_dictionary(dictionary).map_err(corrupt)?;
        Ok(())
    }

    /// Unpacks some bytes and appends them to `output`.
    pub(super) fn step(&mut self, output: &mut Vec<u8>) -> Result<Unpacked, UnpackError> {
        self.detect()?;
        let at_file_start = std::mem::replace(&mut self.at_file_start, false);
        match &self.codec {
            UnpackCodec::Unknown(_) | UnpackCodec::Plain => {
                let bytes = self.input.fill()?;
                let count = bytes.len();
                output.extend_from_slice(bytes);
                self.input.consume(count);
                Ok(if count == 0 { Unpacked::Finished } else { Unpacked::Data })
            }
            UnpackCodec::Gzip(_) if self.inside => self.inflate(output),
            UnpackCodec::Gzip(_) => self.start_gzip(),
            UnpackCodec::Zstd(_) if self.inside => self.decompress(output),
            UnpackCodec::Zstd(_) => self.start_zstd(at_file_start),
        }
    }

    /// Continues at the next place that looks like a member's start; `false` if there is none.
    pub(super) fn resume(&mut self) -> io::Result<bool> {
        let magic: &[u8] = match &mut self.codec {
            UnpackCodec::Unknown(_) | UnpackCodec::Plain => return Ok(false),
            UnpackCodec::Gzip(_) => &GZIP_MAGIC,
            UnpackCodec::Zstd(context) => {
                // Resetting the session cannot fail.
                let _ = context.reset(zstd_safe::ResetDirective::SessionOnly);
                &ZSTD_MAGIC
            }
        };
        // A member that failed immediately, or a place where none starts, must not be found again.
        if !std::mem::replace(&mut self.inside, false) || self.input.position() == self.member_start {
            self.input.fill()?;
            self.input.consume(1);
        }
        loop {
            let bytes = self.input.fill_to(magic.len())?;
            if bytes.len() < magic.len() {
                return Ok(false);
            }
            match memchr::memmem::find(bytes, magic) {
                Some(found) => {
                    self.input.consume(found);
                    return Ok(true);
                }
                None => {
                    let passed = bytes.len() + 1 - magic.len();
                    self.input.consume(passed);
                }
            }
        }
    }

    fn start_gzip(&mut self) -> Result<Unpacked, UnpackError> {
        let bytes = self.input.fill_to(GZIP_MAGIC.len())?;
        if bytes.is_empty() {
            return Ok(Unpacked::Finished);
        }
        if !bytes.starts_with(&GZIP_MAGIC) {
            return Err(UnpackError::Corrupt("no gzip member starts here".into()));
        }
        if let UnpackCodec::Gzip(inflater) = &mut self.codec {
            inflater.member = Decompress::new_gzip(15);
        }
        self.inside = true;
        self.member_start = self.input.position();
        Ok(Unpacked::Start(self.member_start))
    }

    fn inflate(&mut self, output: &mut Vec<u8>) -> Result<Unpacked, UnpackError> {
        let UnpackCodec::Gzip(inflater) = &mut self.codec else { return Ok(Unpacked::Data) };
        let member = &mut inflater.member;
        let bytes = self.input.fill()?;
        let at_end = bytes.is_empty();
        let (taken, put) = (member.total_in(), member.total_out());
        let status = member.decompress(bytes, &mut inflater.output, FlushDecompress::None);
        let (taken, put) = (member.total_in() - taken, member.total_out() - put);
        output.extend_from_slice(inflater.output.get(..put as usize).unwrap_or_default());
        self.input.consume(taken as usize);
        match status {
            Ok(Status::StreamEnd) => {
                self.inside = false;
                Ok(Unpacked::End(self.input.position()))
            }
            Ok(_) if at_end && put == 0 => Err(UnpackError::Ended("the file ends within a member")),
            Ok(_) => Ok(Unpacked::Data),
            Err(error) => Err(UnpackError::Corrupt(error.to_string())),
        }
    }

    fn start_zstd(&mut self, at_file_start: bool) -> Result<Unpacked, UnpackError> {
        let mut first = at_file_start;
        loop {
            let bytes = self.input.fill_to(8)?;
            if bytes.is_empty() {
                return Ok(Unpacked::Finished);
            }
            if bytes.starts_with(&ZSTD_MAGIC) {
                self.inside = true;
                self.member_start = self.input.position();
                return Ok(Unpacked::Start(self.member_start));
            }
            let number = skippable_number(bytes);
            let size = bytes.get(4..).and_then(|rest| rest.first_chunk().copied()).map(u32::from_le_bytes);
            let (Some(number), Some(size)) = (number, size) else {
                return Err(UnpackError::Corrupt("no zstd frame starts here".into()));
            };
            self.input.consume(8);
            if first && number == SKIPPABLE_DICTIONARY {
                self.read_dictionary(size as usize)?;
            } else {
                self.skip(u64::from(size))?;
            }
            first = false;
        }
    }

    fn skip(&mut self, mut count: u64) -> Result<(), UnpackError> {
        while count > 0 {
            let available = self.input.fill()?.len();
            if available == 0 {
                return Err(UnpackError::Corrupt("the file ends within a skippable frame".into()));
            }
            let taken = usize::try_from(count).unwrap_or(usize::MAX).min(available);
            self.input.consume(taken);
            count -= taken as u64;
        }
        Ok(())
    }

    fn read_dictionary(&mut self, size: usize) -> Result<(), UnpackError> {
        if size > DICTIONARY_READ_BYTES_MAX {
            return Err(UnpackError::Corrupt(format!("a dictionary frame of {size} bytes is too long")));
        }
        let mut content = Vec::with_capacity(size);
        while content.len() < size {
            let bytes = self.input.fill()?;
            let taken = bytes.len().min(size - content.len());
            if taken == 0 {
                return Err(UnpackError::Corrupt("the file ends within its dictionary".into()));
            }
            content.extend_from_slice(bytes.split_at(taken).0);
            self.input.consume(taken);
        }
        let dictionary = embedded_dictionary(&content).map_err(UnpackError::Corrupt)?;
        self.load(&dictionary)
    }

    fn decompress(&mut self, output: &mut Vec<u8>) -> Result<Unpacked, UnpackError> {
        let UnpackCodec::Zstd(context) = &mut self.codec else { return Ok(Unpacked::Data) };
        let bytes = self.input.fill()?;
        let at_end = bytes.is_empty();
        output.reserve(STEP_BYTES);
        let length = output.len();
        let mut source = InBuffer::around(bytes);
        let outcome = context.decompress_stream(&mut OutBuffer::around_pos(output, length), &mut source);
        let taken = source.pos();
        self.input.consume(taken);
        match outcome {
            Ok(0) => {
                self.inside = false;
                Ok(Unpacked::End(self.input.position()))
            }
            Ok(_) if at_end && output.len() == length => {
                Err(UnpackError::Ended("the file ends within a frame"))
            }
            Ok(_) => Ok(Unpacked::Data),
            Err(code) => Err(corrupt(code)),
        }
    }
}

fn corrupt(code: usize) -> UnpackError {
    UnpackError::Corrupt(zstd_safe::get_error_name(code).to_owned())
}
