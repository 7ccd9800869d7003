import { EvError } from '../base/error.ts'
import { type Config, type Environment, SETTINGS, type Setting } from './settings.ts'
import { Expected } from './values.ts'

/** Where settings are given: flag values by key, the environment, and the parsed file. */
export type RawSettings = {
  readonly flags: Readonly<Record<string, string | boolean | undefined>>
  readonly environment: Environment
  readonly file: {
    readonly path: string
    readonly values: Readonly<Record<string, unknown>>
  } | null
}

/** Raw settings to a checked and frozen Config. Throws EvError('bad_config') that names the bad one and its place. */
export function toConfig(raw: RawSettings): Config {
  refuseUnknownKeys(raw)
  const entries = SETTINGS.map(one => [one.key, frozen(settingOf(one, raw))] as const)
  return Object.freeze(Object.fromEntries(entries)) as unknown as Config
}

function settingOf(one: Setting, raw: RawSettings): unknown {
  const flagValue = raw.flags[one.key]
  if (flagValue !== undefined) return readFrom(one, flagValue, one.flag, 'usage')
  const fromEnvironment = raw.environment[one.environment]
  if (fromEnvironment !== undefined && fromEnvironment !== '') {
    return readFrom(one, fromEnvironment, one.environment, 'bad_config')
  }
  const fromFile = raw.file?.values[fileKey(one)]
  if (fromFile !== undefined) {
    return readFrom(one, fromFile, `"${fileKey(one)}" in ${raw.file?.path}`, 'bad_config')
  }
  return one.fallback(raw.environment)
}

/** In the file a setting has the name of its flag, without the dashes before it. */
const fileKey = (one: Setting) => one.flag.slice(2)

function readFrom(one: Setting, value: unknown, place: string, code: 'usage' | 'bad_config') {
  try {
    return one.read(textOf(value))
  } catch (error) {
    if (!(error instanceof Expected)) throw error
    throw new EvError(code, `${place} is ${shown(one, value)}; it takes ${error.message}.`)
  }
}

/** A file may hold numbers, booleans and lists of them as JSON has them. */
function textOf(value: unknown): string {
  if (Array.isArray(value)) return value.map(textOf).join(',')
  if (value === null || typeof value === 'object') throw new Expected('a text, a number or a list')
  return String(value)
}

/** Of a URL what stands before the host is kept back: it may be a password. */
function shown(one: Setting, value: unknown): string {
  const hidden = one.value === 'URL' && typeof value === 'string'
  return JSON.stringify(hidden ? value.replace(/^.*@/s, '…@') : value)
}

const frozen = (value: unknown): unknown => (Array.isArray(value) ? Object.freeze(value) : value)

function refuseUnknownKeys({ file }: RawSettings) {
  const known = new Set(SETTINGS.map(fileKey))
  for (const key of Object.keys(file?.values ?? {})) {
    if (known.has(key)) continue
    const like = [...known].find(name => name.startsWith(asInFile(key).slice(0, 5)))
    const remedy =
      like === undefined ? '"ev help verify" shows them all.' : `Did you mean "${like}"?`
    throw new EvError('bad_config', `"${key}" in ${file?.path} is not a setting of ev. ${remedy}`)
  }
}

/** `smtpPort`, `--smtp-port` and `EV_SMTP_PORT` all mean `smtp-port`. */
const asInFile = (key: string) =>
  key
    .replace(/^(--|EV_)/, '')
    .replace(/[a-z](?=[A-Z])/g, '$&-')
    .replaceAll('_', '-')
    .toLowerCase()
