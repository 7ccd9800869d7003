import { existsSync, readFileSync } from 'node:fs'
import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { type Command, Option } from 'commander'
import { type RawSettings, toConfig } from '../config/config.ts'
import {
  type Config,
  ENGINE_SETTINGS,
  toDisplayUnit,
  isPath,
  SETTINGS,
  type Settings,
} from '../config/settings.ts'
import { EvError, errorMessage } from '../platform/error.ts'
import { type CliContext, inCwd } from './context.ts'

/** What a command needs that only looks after the data. */
export const DATA_SETTINGS = ['dataDir', 'database'] as const satisfies (keyof Settings)[]

/** Settings as flags: those that the command uses, those of the engine when it does not say. */
export function addSettings(
  command: Command,
  context: CliContext,
  keys: readonly (keyof Settings)[] = ENGINE_SETTINGS.map(one => one.key),
): void {
  command.optionsGroup(
    'Settings (each also as EV_NAME in the environment, and in the config file):',
  )
  command.option('--config <FILE>', 'config file (default: ./ev.config.json, else the user’s)')
  for (const one of SETTINGS.filter(({ key }) => keys.includes(key))) {
    const { flag, value, help } = one
    if (one.isSecret) {
      // Taken, so that it can be said why it is refused; not shown.
      command.addOption(new Option(`${flag} [value]`).hideHelp())
      continue
    }
    const usual = toDisplayUnit(one, one.fallback(context.env))
    const shown = typeof usual === 'number' || (typeof usual === 'string' && usual !== '')
    command.option(
      value === null ? flag : `${flag} <${value}>`,
      shown ? `${help} (default: ${usual})` : help,
    )
  }
  command.option('--debug', 'show the stack of errors')
}

/** Reads settings from flags, environment and file, and checks them; `flags` are as commander gives them. */
export const readConfig = (context: CliContext, flags: Readonly<Record<string, unknown>>): Config =>
  withPaths(context, toConfig(readSettings(context, flags)))

/** The settings with paths that can be opened from anywhere. */
function withPaths(context: CliContext, config: Config): Config {
  const paths = SETTINGS.filter(isPath).map(({ key }) => {
    const path = config[key]
    return [key, typeof path === 'string' ? inCwd(context, path) : null] as const
  })
  const database = config.database.replace(
    /^sqlite:(?!:memory:)(.+)$/s,
    (_, file: string) => `sqlite:${inCwd(context, file)}`,
  )
  return Object.freeze({ ...config, ...Object.fromEntries(paths), database })
}

/** Settings as they are given, before anything is checked. */
export function readSettings(
  context: CliContext,
  flags: Readonly<Record<string, unknown>>,
): RawSettings {
  const file = findFile(context, flags.config)
  return {
    flags: Object.fromEntries(
      SETTINGS.map(one => [one.key, flags[commanderName(one.flag)] as string]),
    ),
    environment: context.env,
    file: file === null ? null : { path: file, values: readFile(context, file) },
  }
}

/** A hint where the name that we give ourselves will make servers refuse us. */
export function heloHint(config: Config): string | null {
  const isFull = (helo: string) => helo.includes('.') || helo.startsWith('[')
  if (config.egresses.every(({ helo }) => isFull(helo))) return null
  return (
    `Note: this machine calls itself “${hostname()}”, which is no full host name; many mail servers ` +
    'refuse that. Give your own with --helo probe.example.com (its PTR record should match).'
  )
}

const commanderName = (flag: string) =>
  flag.slice(2).replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

function findFile(context: CliContext, given: unknown): string | null {
  const named = typeof given === 'string' ? given : context.env.EV_CONFIG
  if (named !== undefined && named !== '') {
    if (existsSync(inCwd(context, named))) return named
    const place = typeof given === 'string' ? '--config' : 'EV_CONFIG'
    throw new EvError(
      'bad_config',
      `There is no config file ${named}, which ${place} names. Correct the name or leave it out.`,
    )
  }
  const configHome = context.env.XDG_CONFIG_HOME || join(context.env.HOME || homedir(), '.config')
  const candidates = ['ev.config.json', join(configHome, 'ev', 'ev.config.json')]
  return candidates.find(path => existsSync(inCwd(context, path))) ?? null
}

function readFile(context: CliContext, path: string): Record<string, unknown> {
  try {
    const values: unknown = JSON.parse(readFileSync(inCwd(context, path), 'utf8'))
    if (typeof values !== 'object' || values === null || Array.isArray(values)) {
      throw new Error('it holds no object')
    }
    return values as Record<string, unknown>
  } catch (error) {
    const why = errorMessage(error)
    throw new EvError(
      'bad_config',
      `The config file ${path} cannot be read: ${why}. It takes JSON.`,
      {
        cause: error,
      },
    )
  }
}
