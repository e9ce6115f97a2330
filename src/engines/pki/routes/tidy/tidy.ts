import { noData } from '../../../../answers.ts'
import { Answer, type Call, type Data, type Outcome, route } from '../../../../route.ts'
import type { PkiContext } from '../../context.ts'
import { noFields } from '../../input/page.ts'
import { describeStatus, tidyStatusAnswer } from '../../tidy/describe.ts'
import { nothingToDo, orderOf, tidyBody } from '../../tidy/fields.ts'
import { asksAnything } from '../../tidy/settings.ts'
import type { TidyRun } from '../../tidy/tables.ts'

const begun =
  "Tidy operation successfully started. Any information from the operation will be printed to Strongroom's server logs."

async function begin({ context, mount, body, warn }: Call<PkiContext, typeof tidyBody>): Promise<Outcome> {
  const order = orderOf(body)
  if (!asksAnything(order)) {
    warn(`Manual tidy requested but no tidy operations were set. ${nothingToDo}`)
    return new Answer({ status: 202 })
  }
  if ((await context.tidying.begin(mount.uuid, order)) === undefined) {
    warn('Tidy operation already in progress.')
    return new Answer({ data: null })
  }
  warn(begun)
  return new Answer({ status: 202 })
}

export const tidyMount = route<PkiContext, typeof tidyBody>({
  method: 'POST',
  path: 'tidy',
  access: 'token',
  about: 'Removes expired entries, in the background.',
  body: tidyBody,
  answers: [...noData(202), ...noData()],
  run: begin,
})

type StatusCall = Call<PkiContext, typeof noFields>

async function statusOf({ context, mount }: StatusCall, run: TidyRun | undefined): Promise<Data> {
  const { tidy } = (await context.authorities.of(mount)).settings
  const { certificates } = context
  const [stored, revoked] = tidy?.maintainStoredCertificateCounts
    ? await Promise.all([certificates.count(mount.uuid), certificates.countRevoked(mount.uuid)])
    : [null, null]
  return describeStatus(mount.uuid, run, { certificates: stored, revoked })
}

export const readTidyStatus = route<PkiContext, typeof noFields>({
  method: 'GET',
  path: 'tidy-status',
  access: 'token',
  about: 'The progress of tidying at this site, or its last result.',
  body: noFields,
  answers: tidyStatusAnswer,
  run: async (call) => statusOf(call, await call.context.tidying.runs.find(call.mount.uuid)),
})

async function cancel(call: StatusCall): Promise<Outcome> {
  const { runs } = call.context.tidying
  const { uuid } = call.mount
  const cancelled = await runs.cancel(uuid)
  if (cancelled === undefined) call.warn('Tidy operation cannot be cancelled as none is currently running.')
  return statusOf(call, cancelled ?? (await runs.find(uuid)))
}

export const cancelTidy = route<PkiContext, typeof noFields>({
  method: 'POST',
  path: 'tidy-cancel',
  access: 'token',
  about: 'Stops tidying before the next certificates are removed.',
  body: noFields,
  answers: tidyStatusAnswer,
  run: cancel,
})
