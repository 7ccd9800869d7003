import { EvError } from '../platform/error.ts'
import { pickEgress, readEgresses } from './egresses.ts'
import { asInFile, shown, textOf } from './fields.ts'
import { readOperators } from './operators.ts'
import { readIpLimits, readPlans } from './plans.ts'
import type { Environment } from './setting.ts'
import { type Config, SETTINGS, type Setting, type Settings } from './settings.ts'
import { Expected } from './values.ts'

/** Where settings are given: flag values by key, the environment, and the parsed file. */
export type RawSettings = {
  readonly flags: Readonly<Record<string, string | boolean | undefined>>
  readonly environment: Environment
  readonly file: {
    readonly path: string
    readonly values: Readonly<Record<string, unknown>>
  } | null
  /** What a program hands in, in place of what the file holds. */
  readonly structures?: Readonly<Partial<Record<Structure, unknown>>>
}

/** Raw settings to a checked and frozen Config. Throws EvError('bad_config') that names the bad one and its place. */
export function toConfig(raw: RawSettings): Config {
  refuseUnknownKeys(raw)
  const entries = SETTINGS.map(one => [one.key, frozen(settingOf(one, raw))] as const)
  const settings = Object.fromEntries(entries) as unknown as Settings
  const named = inPlace('egresses', raw, given => readEgresses(given, settings))
  const only = egressAskedFor(raw, settings)
  const fault = raw.flags.egress === undefined ? 'bad_config' : 'usage'
  const egresses =
    only === null ? named : inPlace('egresses', raw, () => pickEgress(named, only), fault)
  const names = named.map(({ name }) => name)
  const operators = inPlace('operators', raw, given => readOperators(given, names))
  const plans = inPlace('plans', raw, readPlans)
  const ipLimits = inPlace('ip-limits', raw, readIpLimits)
  return Object.freeze({
    ...settings,
    egresses: Object.freeze(egresses),
    operators,
    plans,
    ipLimits,
  })
}

/** What no flag and no variable of the environment can hold, as it is no single text. */
const STRUCTURES = ['egresses', 'operators', 'plans', 'ip-limits'] as const

export type Structure = (typeof STRUCTURES)[number]

function inPlace<T>(
  key: Structure,
  { file, structures }: RawSettings,
  read: (given: unknown) => T,
  code: 'usage' | 'bad_config' = 'bad_config',
): T {
  const handedIn = structures?.[key]
  try {
    return read(handedIn ?? file?.values[key])
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    if (handedIn !== undefined) {
      throw new EvError('usage', `The option "${key}" takes ${error.message}.`)
    }
    throw new EvError(code, `"${key}" in ${file?.path} takes ${error.message}.`)
  }
}

/** Of several egresses all are used, unless one is named. */
function egressAskedFor({ flags, environment }: RawSettings, { egress }: Settings): string | null {
  return flags.egress !== undefined || environment.EV_EGRESS ? egress : null
}

function settingOf(one: Setting, raw: RawSettings): unknown {
  const given = givenFor(one, raw)
  switch (given.by) {
    case 'flag':
      if (isSecretIn(one, given.value)) throw secretAsFlag(one)
      return readFrom(one, given.value, given.place, 'usage')
    case 'environment':
      return readFrom(one, given.value, given.place, 'bad_config')
    case 'file':
      return readFrom(one, given.value, `"${fileKey(one)}" in ${given.place}`, 'bad_config')
    case 'default':
      return one.fallback(raw.environment)
  }
}

/** What stands before an @ may be a password, also in a URL that is wrong. */
const isSecretIn = (one: Setting, value: unknown) =>
  one.isSecret || (one.mayHoldPassword && `${value}`.includes('@'))

/** Where a setting comes from, and what stands there. */
export type Given =
  | {
      readonly by: 'flag' | 'environment' | 'file'
      readonly place: string
      readonly value: unknown
    }
  | { readonly by: 'default' }

/** The first door that gives a setting: a flag, the environment, the file; else it has its default. */
export function givenFor(one: Setting, { flags, environment, file }: RawSettings): Given {
  const flagValue = flags[one.key]
  if (flagValue !== undefined) return { by: 'flag', place: one.flag, value: flagValue }
  const fromEnvironment = environment[one.environment]
  if (fromEnvironment !== undefined && fromEnvironment !== '') {
    return { by: 'environment', place: one.environment, value: fromEnvironment }
  }
  const fromFile = file?.values[fileKey(one)]
  if (file !== null && fromFile !== undefined) {
    return { by: 'file', place: file.path, value: fromFile }
  }
  return { by: 'default' }
}

/** In the file a setting has the name of its flag, without the dashes before it. */
export const fileKey = (one: Setting) => one.flag.slice(2)

function readFrom(one: Setting, value: unknown, place: string, code: 'usage' | 'bad_config') {
  try {
    return one.read(textOf(value))
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    throw new EvError(code, `${place} ${what(one, value)}; it takes ${error.message}.`)
  }
}

const what = (one: Setting, value: unknown) =>
  one.isSecret || one.mayHoldPassword ? 'is not right' : `is ${shown(value, one.value === 'URL')}`

const secretAsFlag = (one: Setting) =>
  new EvError(
    'usage',
    `${one.flag} would show a secret to everybody who may list the processes of this machine. Give it as ` +
      `${one.environment} in the environment, or as "${fileKey(one)}" in the config file.`,
  )

const frozen = (value: unknown): unknown => (Array.isArray(value) ? Object.freeze(value) : value)

function refuseUnknownKeys({ file }: RawSettings) {
  const known = new Set([...SETTINGS.map(fileKey), ...STRUCTURES])
  for (const key of Object.keys(file?.values ?? {})) {
    if (known.has(key)) continue
    const like = [...known].find(name => name.startsWith(asInFile(key).slice(0, 5)))
    const remedy = like === undefined ? '"ev config" shows them all.' : `Did you mean "${like}"?`
    throw new EvError('bad_config', `"${key}" in ${file?.path} is not a setting of ev. ${remedy}`)
  }
}
