import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect as connectPlain, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'

/** PEM texts and paths of a certificate for 127.0.0.1 that is its own authority. */
export interface TestCertificate {
  readonly cert: string
  readonly key: string
  readonly certPath: string
  readonly keyPath: string
  remove(): void
}

export function createCertificate(): TestCertificate {
  const directory = mkdtempSync(join(tmpdir(), 'strongroom-tls-'))
  const certPath = join(directory, 'cert.pem')
  const keyPath = join(directory, 'key.pem')
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes']
  const names = ['-subj', '/CN=test', '-addext', 'subjectAltName=IP:127.0.0.1', '-days', '2']
  execFileSync('openssl', ['req', '-x509', ...curve, ...names, '-keyout', keyPath, '-out', certPath], {
    stdio: 'ignore',
  })
  return {
    cert: readFileSync(certPath, 'utf8'),
    key: readFileSync(keyPath, 'utf8'),
    certPath,
    keyPath,
    remove: () => rmSync(directory, { recursive: true }),
  }
}

/** A client socket that is connected; TLS when a certificate to trust is given. */
export function dial(port: number, trusted?: TestCertificate, client?: TestCertificate): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = trusted
      ? connectTls({
          port,
          host: '127.0.0.1',
          ca: trusted.cert,
          ...(client ? { cert: client.cert, key: client.key } : {}),
        })
      : connectPlain(port, '127.0.0.1')
    socket.setNoDelay(true)
    socket.once('error', reject)
    socket.once(trusted ? 'secureConnect' : 'connect', () => {
      socket.off('error', reject)
      socket.on('error', () => undefined)
      resolve(socket)
    })
  })
}

/** Everything the server sends until it ends the connection. */
export function hear(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    let heard = ''
    socket.on('data', (chunk: Buffer) => {
      heard += chunk.toString('latin1')
    })
    socket.on('end', () => resolve(heard)).on('close', () => resolve(heard))
  })
}

/** Everything the server sends until the text matches. */
export function hearUntil(socket: Socket, pattern: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    let heard = ''
    const take = (chunk: Buffer): void => {
      heard += chunk.toString('latin1')
      if (!pattern.test(heard)) return
      socket.off('data', take).off('close', gone)
      resolve(heard)
    }
    const gone = (): void => reject(new Error(`closed after ${JSON.stringify(heard)}`))
    socket.on('data', take).on('close', gone)
  })
}

export const statuses = (heard: string): string[] =>
  [...heard.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status = '']) => status).filter((status) => status !== '100')
