import { type Call, type Data, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'
import { autoTidyAnswer, describeAutoTidy } from '../../tidy/describe.ts'
import { autoTidyBody, autoTidyOf } from '../../tidy/fields.ts'
import { defaultAutoTidy } from '../../tidy/settings.ts'

export const readAutoTidy = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'config/auto-tidy',
  access: 'token',
  about: 'The settings of automatic tidying.',
  body: noFields,
  answers: autoTidyAnswer,
  run: async ({ context, mount }) => describeAutoTidy((await context.authorities.of(mount)).settings.tidy),
})

async function write({ context, mount, body }: Call<PkiContext, typeof autoTidyBody>): Promise<Data> {
  const { authority } = await context.authorities.change(mount, async (_tx, { settings }) => ({
    settings: { tidy: autoTidyOf(settings.tidy ?? defaultAutoTidy, body) },
    result: undefined,
  }))
  return describeAutoTidy(authority.settings.tidy)
}

export const writeAutoTidy = route<PkiContext, typeof autoTidyBody>({
  method: 'POST',
  path: 'config/auto-tidy',
  access: 'token',
  about: 'Changes the settings of automatic tidying; absent fields stay unchanged.',
  body: autoTidyBody,
  answers: autoTidyAnswer,
  run: write,
})
