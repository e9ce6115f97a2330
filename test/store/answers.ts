const headerBytes = 4
const [ok, endOfRows, failed] = [0x00, 0xfe, 0xff]
/** SERVER_MORE_RESULTS_EXISTS, in the status of an OK or EOF packet. */
const moreResults = 8
/** Of OK and EOF packets without text; rows are longer. */
const longestEnd = 9

/**
 * Collects the server's answers to statements that were sent together, until the last of them is whole
 * (MySQL client/server protocol: packets, OK, EOF and ERR). Counts of affected rows must be below 251.
 * @returns a function that takes further bytes, and tells whether the answers are whole
 */
export function wholeAnswers(): (bytes: Buffer) => boolean {
  let all = Buffer.alloc(0)
  return (bytes) => {
    all = Buffer.concat([all, bytes])
    let last = Buffer.alloc(0)
    let at = 0
    while (at + headerBytes <= all.length) {
      const end = at + headerBytes + all.readUIntLE(at, 3)
      last = all.subarray(at + headerBytes, end)
      at = end
    }
    return at === all.length && isLast(last)
  }
}

function isLast(packet: Buffer): boolean {
  const [first] = packet
  if (first === failed) return true
  if ((first !== ok && first !== endOfRows) || packet.length > longestEnd || packet.length < 5) return false
  return (packet.readUInt16LE(3) & moreResults) === 0
}
