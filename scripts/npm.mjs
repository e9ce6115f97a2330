// Plain JavaScript: the system's Node 18 runs this.
import { readFileSync } from 'node:fs'

/**
 * Under `npm start`: sends this process SIGTERM when npm is gone. A killed npm passes no signal on, and the next start
 * must not find us still serving. Between npm and us there may be the shell of the script line.
 */
export function endWithNpm() {
  const child = [process.pid, process.ppid].find((pid) => read(parentOf(pid), 'cmdline').startsWith('npm '))
  if (child === undefined) return
  const npm = parentOf(child)
  setInterval(() => parentOf(child) !== npm && process.kill(process.pid, 'SIGTERM'), 500).unref()
}

const parentOf = (pid) => Number(/^PPid:\s*(\d+)/m.exec(read(pid, 'status'))?.[1] ?? 0)

function read(pid, file) {
  try {
    return readFileSync(`/proc/${pid}/${file}`, 'utf8')
  } catch {
    return ''
  }
}
