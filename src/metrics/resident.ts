let last = 0

/** Resident memory of this process, in bytes; as it was last when no descriptor is free to read it (/proc/self/stat). */
export function residentBytes(): number {
  try {
    last = process.memoryUsage.rss()
  } catch {
    // EMFILE must end no worker: it has room again when clients have gone.
  }
  return last
}
