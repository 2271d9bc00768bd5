//! Memory: how much, as people write it, and how much the process took.

/// A size like `80MB` (10^6) or `64MiB` (2^20).
///
/// # Errors
/// A sentence that says what is wrong with the text.
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

/// The most memory this process ever had resident, in bytes; `None` if the system does not report it.
#[must_use]
pub fn peak_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}
