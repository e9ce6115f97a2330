/**
 * Appends 8,000 commits to a shared log, each of which raises one leaf, and says after each twenty-fifth how many it
 * has appended. Run as `node appender.ts PLACE`; it begins when it is told its leaf.
 */
import { setImmediate as turn } from 'node:timers/promises'
import { SharedLog } from '../../../src/store/coherence/sharedlog.ts'

const log = new SharedLog(JSON.parse(process.argv[2] ?? ''))
process.once('message', async (leaf: number) => {
  for (let v = 1; v <= 8000; v++) {
    log.append({ leaves: [[leaf, v]], groups: [] })
    if (v % 25 === 0) process.send?.(v)
    if (v % 100 === 0) await turn()
  }
  process.send?.(8000, () => process.disconnect())
})
process.send?.('ready')
