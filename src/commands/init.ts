import { readFileSync } from 'node:fs'
import { Command, Option } from 'commander'
import type { Initialised } from '../initialise.ts'
import type { Ceremony } from '../keys/initialise.ts'
import { mostComponents } from '../keys/kek/components.ts'
import { allFromPrompt, componentsFromSheets, sheetsFromFiles } from './components.ts'
import { wholeNumber } from './number.ts'
import { askSecret } from './prompt.ts'
import { openSettings, withConfig, withForce } from './settings.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
  readonly kek: 'generate' | 'components'
  readonly componentFile: readonly string[]
  readonly custodians: number
  readonly rootTokenFile?: string
  readonly ifNeeded?: boolean
  readonly json?: boolean
}

/** `strongroom init`: makes the cluster's keys and its root token, once. */
export const initCommand = (): Command =>
  withForce(withConfig(new Command('init')))
    .description('make schema, keys, mounts and root token of a new cluster')
    .addOption(
      new Option('--kek <how>', 'origin of the KEKs: generated in the token, or from custodians')
        .choices(['generate', 'components'])
        .default('generate'),
    )
    .option('--component-file <file...>', "custodians' files, made by `kek component`; prompted for when absent", [])
    .option('--custodians <number>', 'number of custodians to prompt', wholeNumber(2, mostComponents), 2)
    .option('--root-token-file <file>', 'take the root token from a file instead of making one')
    .option('--if-needed', 'succeed without doing anything when the cluster is already initialised')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nThe root token can also be given in STRONGROOM_ROOT_TOKEN. The output is shown only once.')
    .action(initialiseCluster)

async function initialiseCluster(options: Options): Promise<void> {
  const rootToken = readRootToken(options.rootTokenFile)
  const settings = await openSettings(options)
  // Imported here, so that the supervisor, which shares this entry, does not load it.
  const { initialise, isInitialised } = await import('../initialise.ts')
  if (options.ifNeeded && (await isInitialised(settings))) return
  const kek = await ceremony(options)
  const show = (made: Initialised) => print(made, rootToken !== undefined, options.json)
  const fault = await initialise({ ...settings, kek, show, ...(rootToken === undefined ? {} : { rootToken }) })
  if (fault === undefined) return
  const reason = fault instanceof Error ? fault.message : fault
  console.error(`warning: the cluster is made; afterwards something failed: ${reason}`)
}

/** @param chosen whether the operator chose the root token, and so already has it */
function print({ clusterId, rootToken, unsealSecret }: Initialised, chosen: boolean, json = false): void {
  const answer = {
    cluster_id: clusterId,
    ...(chosen ? {} : { root_token: rootToken }),
    unseal_secret: unsealSecret,
  }
  if (json) console.log(JSON.stringify(answer))
  else for (const [name, value] of Object.entries(answer)) console.log(`${`${name}:`.padEnd(15)}${value}`)
}

async function ceremony(options: Options): Promise<Ceremony> {
  if (options.kek === 'generate') return 'generate'
  const { componentFile: files, custodians } = options
  const components =
    files.length > 0
      ? componentsFromSheets(sheetsFromFiles(files))
      : await allFromPrompt(custodians, askSecret, console.error)
  return { components }
}

function readRootToken(file: string | undefined): string | undefined {
  if (file !== undefined) {
    const token = readFileSync(file, 'utf8').trim()
    if (token === '') throw new Error(`--root-token-file: ${file} is empty`)
    return token
  }
  return process.env.STRONGROOM_ROOT_TOKEN || undefined
}
