import { ENGINE } from './engine-settings.ts'
import { readFields } from './fields.ts'
import type { SettingValues } from './setting.ts'
import { Expected } from './values.ts'

/** A source identity: who we say we are, and from where. */
export type EgressConfig = {
  readonly name: string
  readonly helo: string
  /** The bare address; empty for the null sender. */
  readonly mailFrom: string
  readonly sourceAddress: string | null
  readonly proxy: string | null
}

type Settings = SettingValues<typeof ENGINE>

/** The egresses that the config file names; what one leaves out is as the settings have it. Throws Expected. */
export function readEgresses(given: unknown, settings: Settings): readonly EgressConfig[] {
  if (given === undefined) return [egressOf({ name: settings.egress }, settings)]
  if (!Array.isArray(given) || given.length === 0) {
    throw new Expected('a list such as [{"name": "a", "source-address": "192.0.2.1"}]')
  }
  const all = given.map((one, index) => egressOf(readEgress(one, index), settings))
  const names = all.map(({ name }) => name)
  const twice = names.find((name, index) => names.indexOf(name) !== index)
  if (twice !== undefined) throw new Expected(`each name once; "${twice}" is there twice`)
  return all
}

/** The one that was asked for. Throws Expected where it is not among them. */
export function pickEgress(all: readonly EgressConfig[], name: string): readonly EgressConfig[] {
  const picked = all.filter(one => one.name === name)
  if (picked.length > 0) return picked
  const names = all.map(one => one.name).join(', ')
  throw new Expected(`the egress "${name}" that you ask for among its own, which are ${names}`)
}

type Named = Partial<EgressConfig> & Pick<EgressConfig, 'name'>

function readEgress(given: unknown, index: number): Named {
  const { name, ...rest } = readFields(given, {
    name: ENGINE.egress.read,
    helo: ENGINE.helo.read,
    mailFrom: ENGINE.mailFrom.read,
    sourceAddress: ENGINE.sourceAddress.read,
    proxy: ENGINE.proxy.read,
  })
  if (name === undefined) throw new Expected(`a "name" in each; number ${index + 1} has none`)
  return { name, ...rest }
}

const egressOf = (
  egress: Named,
  { helo, mailFrom, sourceAddress, proxy }: Settings,
): EgressConfig => Object.freeze({ helo, mailFrom, sourceAddress, proxy, ...egress })
