import { Type } from 'typebox'
import { keyList } from '../answers.ts'
import { absent } from '../errors.ts'
import { integer, text } from '../field.ts'
import { type Data, type Mount, type Route, route } from '../route.ts'

const body = Type.Object({
  after: text({ about: 'Only names after this one.' }),
  limit: integer({ about: 'The most names to return; absent or 0 means all.' }),
})

const namesInPage = 1000

/** The names of a mount that a route lists. */
interface NameList<Context> {
  /** Below the mount. */
  readonly path: string
  /** One sentence for OpenAPI and `?help=1`. */
  readonly about: string
  /** The names after `after`, sorted, at most `limit` of them. */
  page(context: Context, mount: Mount, after: string, limit: number): Promise<readonly string[]>
}

/** A route that lists names, read from the database page by page; 404 where there is none, as in Vault. */
export const listNames = <Context>({ path, about, page }: NameList<Context>): Route<Context, typeof body> =>
  route<Context, typeof body>({
    method: 'LIST',
    path,
    access: 'token',
    about,
    body,
    answers: keyList,
    async run({ context, mount, body }): Promise<Data> {
      const limit = body.limit && body.limit > 0 ? body.limit : Number.POSITIVE_INFINITY
      const keys: string[] = []
      for (let cursor = body.after ?? ''; keys.length < limit; cursor = keys.at(-1) ?? '') {
        const names = await page(context, mount, cursor, Math.min(namesInPage, limit - keys.length))
        keys.push(...names)
        if (names.length < namesInPage) break
      }
      if (keys.length === 0) throw absent()
      return { keys }
    },
  })
