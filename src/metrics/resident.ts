let last = 0

/** Resident memory of this process, in bytes; the last figure when no descriptor is free to read /proc/self/stat. */
export function residentBytes(): number {
  try {
    last = process.memoryUsage.rss()
  } catch {
    // EMFILE must not end a worker: descriptors are free again when clients have gone.
  }
  return last
}
