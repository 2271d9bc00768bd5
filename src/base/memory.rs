//! Memory sizes as people write them, and the peak memory of the process.

/// Parses a size such as `80MB` (10^6) or `64MiB` (2^20).
///
/// # Errors
/// When the text is not a size; the message says what is wrong.
pub fn parse_bytes(text: &str) -> Result<usize, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" | "m" => 1_000_000,
        "gb" | "g" => 1_000_000_000,
        "kib" => 1 << 10,
        "mib" => 1 << 20,
        "gib" => 1 << 30,
        _ => return Err(format!("'{unit}' is not a unit; write 80MB or 64MiB")),
    };
    let number: usize = number.parse().map_err(|_| format!("'{text}' is not a size; write 80MB or 64MiB"))?;
    number.checked_mul(factor).ok_or_else(|| format!("'{text}' is too much"))
}

/// Peak resident memory of this process in bytes; `None` if the system does not report it.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
