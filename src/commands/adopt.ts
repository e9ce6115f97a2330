import { Command } from 'commander'
import type { Adopted, AdoptRequest } from '../ceremony/adopt.ts'
import { type Component, mostComponents } from '../keys/kek/components.ts'
import type { KekPurpose } from '../keys/tables.ts'
import { componentsFromPrompt, sheetsFromFiles } from './components.ts'
import { wholeNumber } from './number.ts'
import { askSecret } from './prompt.ts'
import { printOnlyRootToken } from './roottoken.ts'
import { type OpenedSettings, openSettings, withConfig, withForce } from './settings.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
  readonly componentFile: readonly string[]
  readonly custodians: number
  readonly rowKey?: string
  readonly shared: boolean
  readonly join: boolean
  readonly damaged: boolean
}

/** `strongroom kek adopt`: makes KEKs from their custodians' components, in this node's token. */
export const adoptCommand = (): Command =>
  withForce(withConfig(new Command('adopt')))
    .argument(
      '[id]',
      'id of one KEK from `kek status` (with all others that this token lacks; an announced one takes its new files alone); without it the whole cluster, into a token that is new to it',
    )
    .description("bring KEKs into this node's token from their custodians' components")
    .option('--component-file <file...>', "custodians' files, of every ceremony; prompted for when absent", [])
    .option('--custodians <number>', 'number of custodians to prompt', wholeNumber(2, mostComponents), 2)
    .option('--row-key <check value>', 'as shown earlier by `kek status`; prompted for when absent')
    .option('--join', 'other nodes serve the cluster: tokens stay valid, and no root token is printed', false)
    .option('--shared', 'the token may hold keys of another cluster', false)
    .option('--damaged', 'continue despite damaged rows; each of them stays refused', false)
    .addHelpText(
      'after',
      '\nWithout an id every sealed row is verified, an epoch begins (tokens issued before are void), and a root token is printed.',
    )
    .action((id: string | undefined, options: Options) =>
      id === undefined ? adoptCluster(options) : adoptOne(id, options),
    )

async function adoptOne(id: string, options: Options): Promise<void> {
  const components = broughtBy(options)
  const settings = await openSettings(options)
  // Imported here, so that the supervisor, which shares this entry, does not load it.
  const { adoptKek } = await import('../ceremony/adopt.ts')
  for (const kek of await adoptKek(settings, id, components))
    console.log(`this token holds the ${kek.purpose} KEK ${kek.id}, check value ${kek.checkValue}`)
}

async function adoptCluster(options: Options): Promise<void> {
  const components = broughtBy(options)
  const settings = await openSettings(options)
  const { rowKey = await askSecret('check value of the row key: '), shared, join, damaged } = options
  // Imported here, so that the supervisor, which shares this entry, does not load it.
  const { adopt } = await import('../ceremony/adopt.ts')
  const request: AdoptRequest = { rowKey, shared, join, damaged, components }
  await adopt(settings, request, (adopted) => report(settings, adopted, join))
}

async function report(settings: OpenedSettings, adopted: Adopted, join: boolean): Promise<void> {
  const { custody, made, verifiedRows, damaged, lost } = adopted
  for (const { purpose, state, id } of made) console.log(`made: ${state} ${purpose} KEK ${id}`)
  console.log(`verified: ${verifiedRows} rows`)
  for (const row of damaged) console.log(`damaged: ${row}`)
  for (const name of lost) console.log(`lost with its token: ${name}`)
  console.log(`epoch ${custody.cluster.epoch}: this token holds cluster ${custody.cluster.id}`)
  if (!join) await printOnlyRootToken(settings, adopted)
}

/**
 * A source of the custodians' components of a KEK. Files are read at once, so that a bad one is found before anything
 * is done.
 */
function broughtBy({
  componentFile: files,
  custodians,
}: Options): (kek: { readonly purpose: string; readonly state: string }) => Promise<readonly Component[]> {
  if (files.length > 0) {
    const sheets = sheetsFromFiles(files)
    return async ({ purpose }) => sheets.map((sheet) => sheet[purpose as KekPurpose])
  }
  return async ({ purpose, state }) => {
    console.error(`components of the ${state} ${purpose} KEK:`)
    return componentsFromPrompt(purpose as KekPurpose, custodians, askSecret, console.error)
  }
}
