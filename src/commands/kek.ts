import { Command, Option } from 'commander'
import type { KekStatus, Rotation } from '../keys/cluster/rotation.ts'
import { type KekPurpose, kekPurposes } from '../keys/tables.ts'
import { componentsFromPrompt, newSheet, sheetsFromFiles } from './components.ts'
import { withCustody } from './custody.ts'
import { wholeNumber } from './number.ts'
import { askSecret } from './prompt.ts'
import { withConfig, withForce } from './settings.ts'

interface Options {
  readonly config?: string
  readonly force?: boolean
}

/** `strongroom kek …`: the keys that wrap keys (KEKs). */
export const kekCommand = (): Command =>
  new Command('kek')
    .description('the keys that wrap keys (KEKs)')
    .addCommand(rotate())
    .addCommand(status())
    .addCommand(adopt())
    .addCommand(destroy())
    .addCommand(component())

const rotate = (): Command =>
  withForce(withConfig(new Command('rotate')))
    .description('announce that KEKs are replaced; the running nodes do it, `kek status` shows how far they are')
    .addOption(new Option('--purpose <purpose>', 'only this one; all four otherwise').choices(kekPurposes))
    .option('--components', 'custodians bring the new KEK by `kek adopt`; otherwise it is born in the token')
    .action(async (options: Options & { purpose?: KekPurpose; components?: boolean }) => {
      await withRotation(options, async (rotation) => {
        for (const purpose of options.purpose ? [options.purpose] : kekPurposes) {
          const { id } = await rotation.announce(purpose, options.components ? 'components' : 'generated')
          console.log(`announced: ${purpose} KEK ${id}`)
        }
        report(await rotation.status())
      })
    })

const status = (): Command =>
  withForce(withConfig(new Command('status')))
    .description('every KEK, the keys under it, and the workers that have not shown that their token holds it')
    .option('--json', 'print JSON')
    .action(async (options: Options & { json?: boolean }) => {
      await withRotation(options, async (rotation) => {
        const keks = await rotation.status()
        if (options.json) console.log(JSON.stringify(keks))
        else report(keks)
      })
    })

const adopt = (): Command =>
  withForce(withConfig(new Command('adopt')))
    .argument('<id>', 'as `kek status` shows it')
    .description("bring a KEK into this node's token from its custodians' components")
    .option('--component-file <file...>', "custodians' files, as `kek component` makes them; without: asked for", [])
    .option('--custodians <number>', 'how many to ask', wholeNumber(2, 20), 2)
    .action(async (id: string, options: Options & { componentFile: readonly string[]; custodians: number }) => {
      await withRotation(options, async (rotation) => {
        const kek = (await rotation.status()).find((one) => one.id === id)
        if (kek === undefined) throw new Error(`there is no KEK ${id}`)
        const { componentFile: files, custodians } = options
        const components =
          files.length > 0
            ? sheetsFromFiles(files).map((sheet) => sheet[kek.purpose])
            : await componentsFromPrompt(kek.purpose, custodians, askSecret, console.error)
        await rotation.adopt(id, components)
        console.log(`this token holds the ${kek.purpose} KEK ${id}`)
      })
    })

const destroy = (): Command =>
  withForce(withConfig(new Command('destroy')))
    .argument('<id>', 'as `kek status` shows it')
    .description('destroy a retired KEK in this token; takes a minute, and older database dumps become useless')
    .action(async (id: string, options: Options) => {
      await withRotation(options, async (rotation) => {
        const { dumpsUsableSince } = await rotation.destroy(id)
        console.log(`destroyed: ${id}`)
        console.log(`database dumps are usable from ${new Date(dumpsUsableSince).toISOString()} on, none from before`)
      })
    })

const component = (): Command =>
  new Command('component')
    .description("make one custodian's file for `--component-file`, or to be typed in, from this machine's randomness")
    .action(() => console.log(newSheet()))

const withRotation = (options: Options, work: (rotation: Rotation) => Promise<void>): Promise<void> =>
  withCustody(options, (custody) => work(custody.rotation))

function report(keks: readonly KekStatus[]): void {
  for (const { id, purpose, state, origin, checkValue, keys, unproven } of keks) {
    console.log(
      `${purpose.padEnd(7)} ${state.padEnd(9)} ${id}  check value ${checkValue || 'none yet'}, ${origin}, ${keys} keys`,
    )
    if (state === 'pending') console.log(`        waits for: ${unproven.join(', ') || 'nobody'}`)
  }
}
