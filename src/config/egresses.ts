import { ENGINE } from './engine-settings.ts'
import { readFields } from './fields.ts'
import type { SettingValues } from './setting.ts'
import { Expected } from './values.ts'

/** A source identity: HELO name, sender, and source address or proxy. */
export type EgressConfig = {
  readonly name: string
  readonly helo: string
  /** The bare address; empty for the null sender. */
  readonly mailFrom: string
  readonly sourceAddress: string | null
  readonly proxy: string | null
}

type Settings = SettingValues<typeof ENGINE>

/** Reads the egresses of the config file; fields default to the settings. Throws Expected. */
export function readEgresses(value: unknown, settings: Settings): readonly EgressConfig[] {
  if (value === undefined) return [withDefaults({ name: settings.egress }, settings)]
  if (!Array.isArray(value) || value.length === 0) {
    throw new Expected('a list such as [{"name": "a", "source-address": "192.0.2.1"}]')
  }
  const all = value.map((one, index) => withDefaults(readEgress(one, index), settings))
  const names = all.map(({ name }) => name)
  const duplicate = names.find((name, index) => names.indexOf(name) !== index)
  if (duplicate !== undefined) throw new Expected(`unique names; "${duplicate}" is used twice`)
  return all
}

/** Returns the egress with this name, as a list. Throws Expected if there is none. */
export function pickEgress(all: readonly EgressConfig[], name: string): readonly EgressConfig[] {
  const picked = all.filter(one => one.name === name)
  if (picked.length > 0) return picked
  const names = all.map(one => one.name).join(', ')
  throw new Expected(`an egress named "${name}", which was selected; it has only ${names}`)
}

type Named = Partial<EgressConfig> & Pick<EgressConfig, 'name'>

function readEgress(value: unknown, index: number): Named {
  const { name, ...rest } = readFields(value, {
    name: ENGINE.egress.read,
    helo: ENGINE.helo.read,
    mailFrom: ENGINE.mailFrom.read,
    sourceAddress: ENGINE.sourceAddress.read,
    proxy: ENGINE.proxy.read,
  })
  if (name === undefined) throw new Expected(`a "name" in each entry; entry ${index + 1} has none`)
  return { name, ...rest }
}

const withDefaults = (
  egress: Named,
  { helo, mailFrom, sourceAddress, proxy }: Settings,
): EgressConfig => Object.freeze({ helo, mailFrom, sourceAddress, proxy, ...egress })
