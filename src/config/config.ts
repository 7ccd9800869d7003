import { EvError } from '../platform/error.ts'
import { findNearestName } from '../platform/nearest-name.ts'
import { ALL_SETTINGS, refuseUnknownVariables } from './environment.ts'
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
import { Expected, formatEndpoint, hostPort } from './values.ts'

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
  refuseUnknownVariables(raw.environment)
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
    listen: readListen(settings, raw),
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

/** Applies `host` and `port` to the listen address. */
function readListen(settings: Settings, raw: RawSettings): string {
  const address = hostPort(settings.listen)
  const parts = findListenParts(raw).map(({ key }) => key)
  const host = parts.includes('host') ? (settings.host ?? address.host) : address.host
  const port = parts.includes('port') ? (settings.port ?? address.port) : address.port
  const listen = formatEndpoint({ host, port })
  const same = LISTEN_PARTS.find(one => hasSourceOfListen(one, raw))
  if (same !== undefined && listen !== settings.listen) throw excludesListen(same, raw)
  return listen
}

const [LISTEN] = SETTINGS.filter(({ key }) => key === 'listen') as [Setting]
const LISTEN_PARTS = SETTINGS.filter(({ key }) => key === 'host' || key === 'port')

/** The sources of a setting; each takes precedence over those before it. */
const SOURCES = ['default', 'file', 'environment', 'flag'] as const

/**
 * Returns which of `host` and `port` apply to the listen address: `--listen` takes precedence over
 * a port in the environment, and `--port` over a listen address there.
 */
export function findListenParts(raw: RawSettings): readonly Setting[] {
  const rank = (one: Setting) => SOURCES.indexOf(findSource(one, raw).by)
  return LISTEN_PARTS.filter(one => rank(one) > 0 && rank(one) >= rank(LISTEN))
}

/**
 * Whether one person has set both. The environment may have several authors: an image sets
 * EV_LISTEN, and its user EV_PORT.
 */
const hasSourceOfListen = (one: Setting, raw: RawSettings) => {
  const { by } = findSource(LISTEN, raw)
  return (by === 'flag' || by === 'file') && by === findSource(one, raw).by
}

function excludesListen(one: Setting, raw: RawSettings): EvError {
  const source = findSource(one, raw)
  const name = (each: Setting) => (source.by === 'file' ? `"${fileKey(each)}"` : each.flag)
  const where = source.by === 'file' ? ` in ${source.place}` : ''
  return new EvError(
    source.by === 'flag' ? 'usage' : 'bad_config',
    `${name(one)} and ${name(LISTEN)}${where} exclude each other, because ${name(LISTEN)} has a host and a port. Remove one of them.`,
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
    const like = findNearestName(normalizeKey(key), [...known])
    const meant = like === null ? '' : ` Did you mean "${like}"?`
    throw new EvError(
      'bad_config',
      `"${key}" in ${file?.path} is not a setting of ev.${meant} ${ALL_SETTINGS}`,
    )
  }
}
