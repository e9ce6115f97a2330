import { writeSync } from 'node:fs'
import { Socket } from 'node:net'

/** The line's end in a program that took over, which passes it on to its own successor. */
export const lineDescriptor = 4

const words = ['stop', 'kill', 'reload', 'upgrade'] as const

/** A signal that the first process got. */
export type Word = (typeof words)[number]

/**
 * The end of the line in the first process, which systemd or a container watches: it passes its signals on to the
 * program that serves, and waits for the last one. No program between the two has to stay.
 */
export class NearLine {
  /** Exit code of the last program, once no program holds the line any more; 1 if it reported no code. */
  readonly ended: Promise<number>
  readonly #socket: Socket

  constructor(socket: Socket) {
    this.#socket = socket
    let said = ''
    socket.setEncoding('utf8').on('data', (text: string) => {
      said += text
    })
    // A program that was killed: its end is all there is to know.
    socket.on('error', () => {})
    this.ended = new Promise((resolve) => {
      socket.once('close', () => resolve(/^\d+\n$/.test(said) ? Number(said) : 1))
    })
  }

  say(word: Word): void {
    this.#socket.write(`${word}\n`)
  }
}

/** The end of the line in the programs that took over. One of them listens at a time; signals sent meanwhile wait. */
export class FarLine {
  #socket: Socket | undefined

  /** @param onEnd called when the first process is gone */
  listen(onWord: (word: Word) => void, onEnd: () => void): void {
    const socket = new Socket({ fd: lineDescriptor })
    this.#socket = socket
    socket.setEncoding('utf8').on('data', (text: string) => {
      for (const said of text.split('\n')) for (const word of words) if (word === said) onWord(word)
    })
    socket.on('error', () => {})
    socket.once('end', onEnd)
  }

  /** The next program listens from now on. */
  leave(): void {
    this.#socket?.destroy()
  }

  /** This program ends, as the last one. */
  report(exitCode: number): void {
    try {
      writeSync(lineDescriptor, `${exitCode}\n`)
    } catch {
      // The first process is gone, and needs no exit code.
    }
  }
}
