import type { Body, Operation, Operations } from '../operation.ts'
import { ciphers } from './ciphers.ts'
import { hashes } from './hashes.ts'
import { signatures } from './signatures.ts'

const items = 100
const hundred = <T>(item: T): T[] => Array.from({ length: items }, () => item)

/** A hundred of an operation in one request. */
function batch(one: Operation | undefined): Operation {
  if (one === undefined) throw new Error('a batch of an operation that is not in the table')
  return {
    ...one,
    items,
    serve: (token, { batch }, store) => ({ results: (batch as Body[]).map((item) => one.serve(token, item, store)) }),
    body: (token) => ({ batch: hundred(one.body?.(token)) }),
    async ask(node) {
      const question = await one.ask(node)
      return { ...question, body: JSON.stringify({ batch_input: hundred(JSON.parse(question.body ?? '{}')) }) }
    },
  }
}

export const batches: Operations = {
  [`encrypt ${items} × 64 B`]: batch(ciphers['encrypt 64 B']),
  [`decrypt ${items} × 64 B`]: batch(ciphers['decrypt 64 B']),
  [`hmac ${items} × 64 B`]: batch(hashes['hmac sha2-256']),
  [`sign ecdsa-p256 ${items} × 64 B`]: batch(signatures['sign ecdsa-p256']),
}
