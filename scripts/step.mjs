// Plain JavaScript: the system's Node 18 runs this. Progress goes to standard error, standard output is for the answer.
import { spawn } from 'node:child_process'

/**
 * Reports a long step: one line when it begins, one when it is done.
 * @template T
 * @param {string} what
 * @param {() => Promise<T>} work
 * @returns {Promise<T>}
 */
export async function step(what, work) {
  const began = performance.now()
  console.error(`${what} …`)
  const result = await work()
  console.error(`${what}: done in ${((performance.now() - began) / 1000).toFixed(1)} s`)
  return result
}

/**
 * Runs a command quietly.
 * @returns {Promise<string>} its standard output
 * @throws {Error} with all its output, when it does not exit with 0
 */
export function run(command, args, options = {}) {
  const child = spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'], ...options })
  const written = { stdout: '', all: '' }
  child.stdout.on('data', (text) => {
    written.stdout += text
    written.all += text
  })
  child.stderr.on('data', (text) => {
    written.all += text
  })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code, signal) => {
      if (code === 0) resolve(written.stdout)
      else reject(new Error(`${command} ${args.join(' ')}: ${signal ?? `exit code ${code}`}\n${written.all}`))
    })
  })
}
