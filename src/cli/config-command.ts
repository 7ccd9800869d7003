import type { Command } from 'commander'
import {
  fileKey,
  findListenParts,
  findSource,
  type RawSettings,
  toConfig,
} from '../config/config.ts'
import { findServiceLinks } from '../config/environment.ts'
import type {
  EgressConfig,
  IpLimitsConfig,
  OperatorConfig,
  PlanConfig,
} from '../config/file-settings.ts'
import { type Config, SETTINGS, type Setting, toDisplayUnit } from '../config/settings.ts'
import { withoutPassword } from '../config/values.ts'
import { SECOND } from '../platform/clock.ts'
import { sanitizeText } from '../platform/text.ts'
import type { CliContext } from './context.ts'
import { databaseUrl } from './database-location.ts'
import { worksWithoutData } from './ev-command.ts'
import { printJson, printText } from './print.ts'
import { addSettings, readSettings } from './settings.ts'
import { table } from './table.ts'
import { widthOf } from './width.ts'

const EXAMPLES = `
Examples:
  ev config
  ev config --json
  EV_HELO=probe.example.com ev config --proxy socks5://proxy.example.com:1080

Passwords in URLs are not shown. A setting shown as – is not set, so ev uses its default.`

export function defineConfig(config: Command, context: CliContext): void {
  worksWithoutData(config)
  config
    .option('--json', 'print JSON: one object')
    .addHelpText('after', EXAMPLES)
    .action(flags => configCommand(context, flags))
  addSettings(
    config,
    context,
    SETTINGS.map(one => one.key),
  )
}

type ConfigFlags = { readonly json?: boolean; readonly [setting: string]: unknown }

function configCommand(context: CliContext, flags: ConfigFlags): void {
  const raw = readSettings(context, flags)
  const config = toConfig(raw)
  const ignored = findServiceLinks(context.env)
  if (flags.json) printJson(context, { ...configObject(config, raw), ignored })
  else {
    const width = widthOf(context, context.stdout)
    context.stdout.write(configText(config, raw, width))
    if (ignored.length > 0) printText(context, `\n${ignoredText(ignored)}`)
  }
}

/** Returns the settings in the format of the config file. */
function configObject(config: Config, raw: RawSettings) {
  const settings = SETTINGS.map(one => [
    fileKey(one),
    { value: writtenValue(one, config), from: sourceOf(one, raw) },
  ])
  return {
    file: raw.file?.path ?? null,
    settings: Object.fromEntries(settings),
    egresses: config.egresses.map(inFile),
    operators: Object.fromEntries(
      Object.entries(config.operators).map(([name, operator]) => [name, inFile(operator)]),
    ),
    plans: Object.fromEntries(
      Object.entries(config.plans).map(([name, plan]) => [name, planInFile(plan)]),
    ),
    'ip-limits': inFile(config.ipLimits),
  }
}

function configText(config: Config, raw: RawSettings, width: number | null): string {
  const rows = SETTINGS.map(one => [
    fileKey(one),
    shownValue(writtenValue(one, config)),
    sourceOf(one, raw),
  ])
  const columns = [{ title: 'SETTING' }, { title: 'VALUE' }, { title: 'FROM' }]
  const egresses = config.egresses.map(({ name, ...rest }) => [name, fieldsText(inFile(rest))])
  const operators = Object.entries(config.operators).map(([name, operator]) => [
    name,
    fieldsText(inFile(operator)),
  ])
  const plans = Object.entries(config.plans).map(([name, plan]) => [
    name,
    fieldsText(planInFile(plan)),
  ])
  const limits = fieldsText(inFile(config.ipLimits))
  const file = raw.file === null ? 'No config file.' : `Config file: ${raw.file.path}`
  return [
    `${file}\n`,
    table(columns, rows, width),
    table([{ title: 'EGRESS' }, { title: '' }], egresses, width),
    ...(operators.length === 0
      ? []
      : [table([{ title: 'OPERATOR' }, { title: '' }], operators, width)]),
    ...(plans.length === 0 ? [] : [table([{ title: 'PLAN' }, { title: '' }], plans, width)]),
    ...(limits === '' ? [] : [table([{ title: 'LIMITS PER IP ADDRESS' }], [[limits]], width)]),
  ].join('\n')
}

/** Kubernetes and Docker set variables that look like settings. */
const ignoredText = (names: readonly string[]) =>
  `Ignored, because Kubernetes or Docker sets them for a service named "ev": ${names.join(', ')}`

function sourceOf(one: Setting, raw: RawSettings): string {
  const parts = one.key === 'listen' ? findListenParts(raw) : []
  const sources = [one, ...parts].map(each => findSource(each, raw))
  const places = sources.map(source => (source.by === 'default' ? 'default' : source.place))
  return [...new Set(places)].join(', ')
}

type Written = string | number | boolean | readonly string[] | null

function writtenValue(one: Setting, config: Config): Written {
  const value = one.key === 'database' ? databaseUrl(config) : config[one.key]
  if (one.isSecret) return value === null ? null : '…'
  if (one.key === 'mailFrom' && value === '') return '<>'
  if (typeof value === 'string' && one.value === 'url') return withoutPassword(value)
  return toDisplayUnit(one, value)
}

/** Returns the fields that are set, by their names in the config file. */
function inFile(
  entry: Partial<EgressConfig> | OperatorConfig | PlanConfig | IpLimitsConfig,
): Readonly<Record<string, Written>> {
  const set = Object.entries(entry).filter(
    ([, value]) => value !== null && !(Array.isArray(value) && value.length === 0),
  )
  return Object.fromEntries(
    set.map(([key, value]: [string, Written]) => toFile([key, fieldValue(key, value)])),
  )
}

const toFile = ([key, value]: [string, Written]): [string, Written] => [
  key.replace(/[A-Z]/g, letter => `-${letter.toLowerCase()}`),
  value,
]

function planInFile({ perMs, ...rest }: PlanConfig): Readonly<Record<string, Written>> {
  const per = perMs === undefined ? {} : { per: perMs === SECOND ? 'second' : 'minute' }
  // Null means unlimited in a plan, so it is kept.
  const unlimited = Object.entries(rest).filter(([, value]) => value === null)
  return { ...inFile(rest), ...per, ...Object.fromEntries(unlimited.map(toFile)) }
}

function fieldValue(key: string, value: Written): Written {
  if (key === 'mailFrom' && value === '') return '<>'
  return key === 'proxy' && typeof value === 'string' ? withoutPassword(value) : value
}

const fieldsText = (fields: Readonly<Record<string, Written>>) =>
  Object.entries(fields)
    .map(([key, value]) => `${key} ${shownValue(value)}`)
    .join(', ')

function shownValue(value: Written): string {
  if (typeof value === 'boolean') return value ? 'on' : 'off'
  const text = Array.isArray(value) ? value.join(',') : String(value ?? '')
  return text === '' ? '–' : sanitizeText(text)
}
