import { MINUTE, SECOND } from '../platform/clock.ts'
import { ENGINE } from './engine-settings.ts'
import { type FieldValues, orNull, readByName, readFields } from './fields.ts'
import type { SettingValues } from './setting.ts'
import { Expected, integer, list, oneOf, text } from './values.ts'

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

const { sessionsPerOperator, recipientsPerSession, sessionsPerSecond } = ENGINE

const readersFor = (egressNames: readonly string[]) => ({
  /** Host name suffixes of its exchangers; required only if ev does not know the operator. */
  hosts: (text: string): readonly string[] => list(text).map(hostSuffix),
  /** Display name. */
  title: text,
  /** Meaning of a 2xx reply to RCPT. */
  truth: oneOf('tells', 'accepts-all', 'tenant', 'gateway', 'parked'),
  sessionsPerOperator: sessionsPerOperator.read,
  recipientsPerSession: recipientsPerSession.read,
  sessionsPerSecond: sessionsPerSecond.read,
  /** Names of the egresses that may connect to it. */
  egresses: (text: string): readonly string[] => list(text).map(oneOf(...egressNames)),
})

type OperatorFields = FieldValues<ReturnType<typeof readersFor>>

/** Settings of the config file for one operator. Null, or no hosts, keeps the built-in value. */
export type OperatorConfig = Pick<OperatorFields, 'hosts'> & {
  readonly [K in Exclude<keyof OperatorFields, 'hosts'>]: OperatorFields[K] | null
}

/** Reads the operators of the config file. Throws Expected. */
export function readOperators(
  input: unknown,
  egressNames: readonly string[],
): Readonly<Record<string, OperatorConfig>> {
  const readers = readersFor(egressNames)
  const defaults = Object.fromEntries(Object.keys(readers).map(key => [key, null]))
  return readByName(input, value => {
    const fields = { ...defaults, hosts: [], ...readFields(value, readers) }
    return fields as Partial<OperatorConfig> as OperatorConfig
  })
}

function hostSuffix(input: string): string {
  const suffix = input.replace(/^\*?\./, '').toLowerCase()
  if (!/^([a-z0-9_]([a-z0-9_-]*[a-z0-9])?\.)+[a-z0-9-]+$/.test(suffix)) {
    throw new Expected('host name suffixes such as mx.example.com')
  }
  return suffix
}

/** More than any machine serves. */
const REQUESTS_MAX = 1_000_000
const CREDITS_MAX = 1_000_000_000
const JOBS_MAX = 1_000_000
/** More keys come from a faulty script. */
const KEYS_MAX = 500
const ROWS_MAX = 1_000_000_000_000

/** Reads the plans of the config file, by name. Throws Expected. */
export const readPlans = (value: unknown): Readonly<Record<string, PlanConfig>> =>
  readByName(value, readPlan)

/** Settings of the config file for one plan. Omitted fields keep their value; null is unlimited. */
export type PlanConfig = Readonly<ReturnType<typeof readPlan>>

function readPlan(value: unknown) {
  const { per, ...rest } = readFields(value, {
    requests: integer(1, REQUESTS_MAX),
    per: oneOf('second', 'minute'),
    creditsPerDay: orNull(integer(1, CREDITS_MAX)),
    concurrentJobs: orNull(integer(1, JOBS_MAX)),
    storedRows: orNull(integer(1, ROWS_MAX)),
    storedFeedback: orNull(integer(1, ROWS_MAX)),
    keys: orNull(integer(1, KEYS_MAX)),
  })
  return { ...rest, ...(per !== undefined && { perMs: PER_MS[per] }) }
}

const PER_MS = { second: SECOND, minute: MINUTE } as const

/** Rate limits of the config file per client address. */
export type IpLimitsConfig = ReturnType<typeof readIpLimits>

/** Reads the rate limits per client address. Throws Expected. */
export function readIpLimits(value: unknown = {}) {
  const limit = integer(1, REQUESTS_MAX)
  const fields = { singlePerMinute: limit, bulkPerHour: limit, formPerMinute: limit }
  return Object.freeze(readFields(value, fields))
}
