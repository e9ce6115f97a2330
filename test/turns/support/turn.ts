import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { join } from 'node:path'

/**
 * Takes its turn in a directory; if told to be slow, it pauses before it first removes a file, until another process
 * has a turn or a second is over. Two turns at once end one of them with an error.
 */
const [, , directory = '', pace = ''] = process.argv
const inside = join(directory, 'inside')
const clock = new Int32Array(new SharedArrayBuffer(4))
const rest = (milliseconds: number) => Atomics.wait(clock, 0, 0, milliseconds)

if (pace === 'slow') {
  const { rmSync } = fs
  fs.rmSync = (path, options) => {
    fs.writeFileSync(join(directory, 'slow'), '')
    for (let waited = 0; waited < 1000 && !fs.existsSync(inside); waited += 10) rest(10)
    fs.rmSync = rmSync
    syncBuiltinESMExports()
    rmSync(path, options)
  }
  syncBuiltinESMExports()
}

const { alone } = await import('../../../src/turns/alone.ts')
alone(directory, 'turn', () => {
  fs.writeFileSync(inside, '', { flag: 'wx' })
  rest(500)
  fs.rmSync(inside)
})
