// Plain JavaScript: the system's Node 18 runs this.
import { spawn } from 'node:child_process'

/**
 * Does work while no other process does work under the same file; at once where there is no flock(1).
 * @template T
 * @param {string} file one that exists; nothing is written to it
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function alone(file, work) {
  // It lets go when its input ends, also because this process was killed.
  const holder = spawn('flock', [file, 'sh', '-c', 'echo held; cat'], { stdio: ['pipe', 'pipe', 'ignore'] })
  holder.stdin.on('error', () => undefined)
  await new Promise((resolve) => {
    holder.stdout.once('data', resolve)
    holder.once('close', resolve)
    holder.once('error', resolve)
  })
  try {
    return await work()
  } finally {
    holder.stdin.end()
  }
}
