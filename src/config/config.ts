import { EvError } from '../platform/error.ts'
import { formatValue, normalizeKey, toText } from './fields.ts'
import {
  pickEgress,
  readEgresses,
  readIpLimits,
  readOperators,
  readPlans,
} from './file-settings.ts'
import type { Environment } from './setting.ts'
import { type Config, SETTINGS, type Setting, type Settings } from './settings.ts'
import { Expected } from './values.ts'

/** Unparsed settings: flag values by key, the environment, and the parsed config file. */
export type RawSettings = {
  readonly flags: Readonly<Record<string, string | boolean | undefined>>
  readonly environment: Environment
  readonly file: {
    readonly path: string
    readonly values: Readonly<Record<string, unknown>>
  } | null
  /** Structures passed by a program; they replace those of the file. */
  readonly structures?: Readonly<Partial<Record<Structure, unknown>>>
}

/** Validates raw settings. Throws EvError('bad_config') that names the setting and its source. */
export function toConfig(raw: RawSettings): Config {
  refuseUnknownKeys(raw)
  const entries = SETTINGS.map(one => [one.key, frozen(readSetting(one, raw))] as const)
  const settings = Object.fromEntries(entries) as unknown as Settings
  requireGravatarKey(settings)
  const all = readStructure('egresses', raw, value => readEgresses(value, settings))
  const selected = selectedEgress(raw, settings)
  const code = raw.flags.egress === undefined ? 'bad_config' : 'usage'
  const egresses =
    selected === null ? all : readStructure('egresses', raw, () => pickEgress(all, selected), code)
  const names = all.map(({ name }) => name)
  const operators = readStructure('operators', raw, value => readOperators(value, names))
  const plans = readStructure('plans', raw, readPlans)
  const ipLimits = readStructure('ip-limits', raw, readIpLimits)
  return Object.freeze({
    ...settings,
    egresses: Object.freeze(egresses),
    operators,
    plans,
    ipLimits,
  })
}

function requireGravatarKey({ signals, gravatarKey }: Settings): void {
  if (gravatarKey !== null || !signals.some(name => name === 'gravatar')) return
  throw new EvError(
    'bad_config',
    'The signal gravatar needs an API key of Gravatar. Set EV_GRAVATAR_KEY in the environment, or "gravatar-key" in the config file.',
  )
}

/** Settings with a nested value: they have no flag and no environment variable. */
const STRUCTURES = ['egresses', 'operators', 'plans', 'ip-limits'] as const

type Structure = (typeof STRUCTURES)[number]

function readStructure<T>(
  key: Structure,
  { file, structures }: RawSettings,
  read: (value: unknown) => T,
  code: 'usage' | 'bad_config' = 'bad_config',
): T {
  const passed = structures?.[key]
  try {
    return read(passed ?? file?.values[key])
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    if (passed !== undefined) {
      throw new EvError('usage', `The option "${key}" takes ${error.message}.`)
    }
    throw new EvError(code, `"${key}" in ${file?.path} takes ${error.message}.`)
  }
}

/** Returns the egress named by a flag or the environment; null if all are used. */
function selectedEgress({ flags, environment }: RawSettings, { egress }: Settings): string | null {
  return flags.egress !== undefined || environment.EV_EGRESS ? egress : null
}

function readSetting(one: Setting, raw: RawSettings): unknown {
  const source = findSource(one, raw)
  switch (source.by) {
    case 'flag':
      if (isSecretIn(one, source.value)) throw secretAsFlag(one)
      return readFrom(one, source.value, source.place, 'usage')
    case 'environment':
      return readFrom(one, source.value, source.place, 'bad_config')
    case 'file':
      return readFrom(one, source.value, `"${fileKey(one)}" in ${source.place}`, 'bad_config')
    case 'default':
      return one.fallback(raw.environment)
  }
}

/** Text before an @ may be a password, in an invalid URL too. */
const isSecretIn = (one: Setting, value: unknown) =>
  one.isSecret || (one.mayHoldPassword && `${value}`.includes('@'))

/** The source of a setting, and its value there. */
type SettingSource =
  | {
      readonly by: 'flag' | 'environment' | 'file'
      readonly place: string
      readonly value: unknown
    }
  | { readonly by: 'default' }

/**
 * Returns the first source that has a setting: a flag, the environment, the file, or the default.
 */
export function findSource(one: Setting, { flags, environment, file }: RawSettings): SettingSource {
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

/** Returns the key of a setting in the config file: its flag without the leading dashes. */
export const fileKey = (one: Setting) => one.flag.slice(2)

function readFrom(one: Setting, value: unknown, place: string, code: 'usage' | 'bad_config') {
  try {
    return one.read(toText(value))
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    throw new EvError(code, `${place} ${problem(one, value)}; it takes ${error.message}.`)
  }
}

const problem = (one: Setting, value: unknown) =>
  one.isSecret || one.mayHoldPassword
    ? 'is invalid'
    : `is ${formatValue(value, one.value === 'url')}`

const secretAsFlag = (one: Setting) =>
  new EvError(
    'usage',
    `${one.flag} would show a secret in the process list. Set ${one.environment} in the environment, ` +
      `or "${fileKey(one)}" in the config file.`,
  )

const frozen = (value: unknown): unknown => (Array.isArray(value) ? Object.freeze(value) : value)

function refuseUnknownKeys({ file }: RawSettings) {
  const known = new Set([...SETTINGS.map(fileKey), ...STRUCTURES])
  for (const key of Object.keys(file?.values ?? {})) {
    if (known.has(key)) continue
    const like = [...known].find(name => name.startsWith(normalizeKey(key).slice(0, 5)))
    const remedy =
      like === undefined ? 'Run "ev config" to list all settings.' : `Did you mean "${like}"?`
    throw new EvError('bad_config', `"${key}" in ${file?.path} is not a setting of ev. ${remedy}`)
  }
}
