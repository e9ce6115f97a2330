import { openSync, writeSync } from 'node:fs'
import { ReadStream } from 'node:tty'

/**
 * Asks on the controlling terminal and reads a line without echo, wherever the standard streams are directed.
 * @throws Error without a terminal, or when Ctrl-C or Ctrl-D is pressed
 */
export async function askSecret(question: string): Promise<string> {
  let terminal: number
  try {
    terminal = openSync('/dev/tty', 'r+')
  } catch {
    throw new Error(`${question.trim().replace(/:$/, '')}: there is no terminal to ask on`)
  }
  const input = new ReadStream(terminal)
  input.setRawMode(true)
  writeSync(terminal, question)
  try {
    return await readLine(input)
  } finally {
    input.setRawMode(false)
    writeSync(terminal, '\n')
    input.destroy()
  }
}

function readLine(input: ReadStream): Promise<string> {
  return new Promise((resolve, reject) => {
    let line = ''
    input.setEncoding('utf8')
    input.on('data', (text: string) => {
      for (const letter of text) {
        if (letter === '\r' || letter === '\n') return resolve(line)
        if (letter === '\u0003' || letter === '\u0004') return reject(new Error('interrupted'))
        line = letter === '\u007f' || letter === '\b' ? line.slice(0, -1) : line + letter
      }
    })
    input.once('error', reject)
    input.once('end', () => reject(new Error('the terminal was closed')))
  })
}
