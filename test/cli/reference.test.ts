import type { Argument, Command, Option } from 'commander'
import { expect, test } from 'vitest'
import {
  commandTree,
  EvCommand,
  MachineOption,
  pathOf,
  SettingOption,
} from '../../src/cli/ev-command.ts'
import { EXIT_CODES } from '../../src/cli/exit.ts'
import { SETTING_GROUPS } from '../../src/cli/settings.ts'
import { SETTINGS, toDisplayUnit } from '../../src/config/settings.ts'
import type { ErrorCode } from '../../src/platform/error.ts'
import { toSentence } from '../../src/platform/text.ts'
import { wholeProgram } from '../support/cli.ts'
import { readDoc, replaceTable } from '../support/markdown.ts'

// docs/cli-reference.md and the table of exit codes are made from the commands. `npm run openapi`
// writes them.

const CHANGED = 'The commands have changed: run `npm run openapi`'
const ev = await wholeProgram()

/** The commands that do something, except `help`, in the order of help. */
const commands = commandTree(ev).filter(
  command => command !== ev && command.name() !== 'help' && command.commands.length === 0,
)

test('docs/cli-reference.md has every command with its options', async () => {
  const sections = [INTRODUCTION, ...commands.map(commandSection), settingsSection()]
  await expect(`${sections.join('\n\n')}\n`, CHANGED).toMatchFileSnapshot(
    '../../docs/cli-reference.md',
  )
})

const INTRODUCTION = `# Command reference

Every command with its arguments and options. [The command line](cli.md) explains them, and \`ev help COMMAND\` shows
examples. The options \`--url\`, \`--key\`, \`--key-file\` and \`--allow-http\` precede a command, and run it
[on a service](cli.md#on-a-service).`

const WHERE = {
  service: 'Works on this machine, and on a service with `--url`.',
  machine: 'Works on the data of this machine.',
  process: 'Works without stored data.',
} as const

function commandSection(command: Command): string {
  const path = pathOf(command)
  const runsOn = command instanceof EvCommand ? command.runsOn : 'machine'
  const usage = command.createHelp().commandUsage(command)
  const rows = [
    ...command.registeredArguments.map(one => [
      `\`${argumentTerm(one)}\``,
      meaningOf(command, one),
    ]),
    ...ownOptions(command).map(one => [`\`${one.flags}\``, meaningOf(command, one)]),
  ]
  const table = ['| argument or option | meaning |', '|---|---|', ...rows.map(rowText)]
  return [
    `## ${path}`,
    `${toSentence(command.description())} ${WHERE[runsOn]}`,
    `\`\`\`\n${usage}\n\`\`\``,
    ...(rows.length === 0 ? [] : [table.join('\n')]),
    ...settingsOf(command),
  ].join('\n\n')
}

const rowText = (cells: readonly string[]) =>
  `| ${cells.map(cell => cell.replaceAll('|', '\\|').replaceAll('*', '\\*')).join(' | ')} |`

const argumentTerm = (argument: Argument) => {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

/** The options of a command without its settings, and without those of every command. */
const ownOptions = (command: Command): Option[] =>
  command.options.filter(
    option =>
      !option.hidden && !(option instanceof SettingOption) && !EVERYWHERE.has(option.long ?? ''),
  )

const EVERYWHERE: ReadonlySet<string> = new Set([
  ...['--help', '--help-all', '--version', '--config', '--debug', '--quiet', '--verbose'],
])

/** The text of help. A default that commander adds is part of it. */
function meaningOf(command: Command, one: Argument | Option): string {
  const help = command.createHelp()
  const isOption = 'flags' in one
  const text = isOption ? help.optionDescription(one) : help.argumentDescription(one)
  const isRequired = isOption && one.mandatory && one.defaultValue === undefined
  const hasDefault = one.defaultValue !== undefined && !text.includes('(default: ')
  return [
    text,
    ...(isRequired ? ['(required)'] : []),
    ...(one instanceof MachineOption ? ['(not with `--url`)'] : []),
    ...(hasDefault && isOption && !one.negate ? [`(default: ${String(one.defaultValue)})`] : []),
  ].join(' ')
}

/** More settings than this are those of the engine or of the service. */
const NAMED_MAX = 8

function settingsOf(command: Command): string[] {
  const settings = command.options.filter(option => option instanceof SettingOption)
  const names = settings.map(({ long }) => `\`${long}\``)
  if (names.length === 0) return []
  if (names.length <= NAMED_MAX) return [`[Settings](#settings): ${names.join(', ')}.`]
  const groups = SETTING_GROUPS.filter(([, keys]) =>
    keys.some(key => settings.some(({ long }) => long === flagOf(key))),
  )
  return [`[Settings](#settings): ${groups.map(([title]) => groupName(title)).join('; ')}.`]
}

const groupName = (title: string) => title.replace(/ settings:$/, '').toLowerCase()

const flagOf = (key: string) => SETTINGS.find(one => one.key === key)?.flag

/** Their defaults depend on the machine. */
const OF_MACHINE: ReadonlySet<string> = new Set(['helo', 'mailFrom', 'dataDir'])

function settingsSection(): string {
  const tables = SETTING_GROUPS.map(([title, keys]) => {
    const rows = keys.map(key => {
      const one = SETTINGS.find(setting => setting.key === key)
      if (one === undefined) throw new Error(`There is no setting ${key}.`)
      const name = one.isSecret ? `\`${variableOf(one.flag)}\`` : `\`${one.flag}\``
      const value = one.value === null ? '' : `\`${one.value}\``
      return rowText([name, value, `${one.help}${defaultOf(one)}`])
    })
    const head = ['| setting | value | meaning |', '|---|---|---|']
    return `### ${title.replace(/:$/, '')}\n\n${[...head, ...rows].join('\n')}`
  })
  return [SETTINGS_TEXT, ...tables].join('\n\n')
}

const SETTINGS_TEXT = `## Settings

The flag \`--smtp-port\` is also the variable \`EV_SMTP_PORT\` and the key \`smtp-port\` of the config file
([details](cli.md#settings)). A secret has no flag, because other users of the machine can see flags.`

const variableOf = (flag: string) => `EV_${flag.slice(2).toUpperCase().replaceAll('-', '_')}`

function defaultOf(one: (typeof SETTINGS)[number]): string {
  if (OF_MACHINE.has(one.key) || one.isSecret) return ''
  const value = one.fallback({})
  if (one.value === 'on|off') return ` (default: ${value === true ? 'on' : 'off'})`
  const shown = toDisplayUnit(one, value)
  const hasText = typeof shown === 'number' || (typeof shown === 'string' && shown !== '')
  return hasText ? ` (default: ${shown})` : ''
}

/** What each code of errors means; a new code needs a sentence here. */
const ERRORS: Readonly<Record<ErrorCode, string>> = {
  usage: 'the command line is wrong, or the request is refused',
  bad_address: 'an address is malformed',
  bad_input: 'a list or a file is malformed',
  no_input: 'a file or an object does not exist',
  internal: 'ev has a fault',
  cannot_write: 'an output cannot be written',
  io: 'a disk, a database, a network or a service failed; try again',
  bad_config: 'a setting is invalid, or the service refuses the key',
  interrupted: 'stopped with Ctrl-C or a signal, or not confirmed',
}

test('docs/cli.md has every exit code', async () => {
  const codes = Map.groupBy(Object.entries(EXIT_CODES), ([, code]) => code)
  const rows = [...codes].map(([code, errors]) => [
    `${code}`,
    errors.map(([name]) => ERRORS[name as ErrorCode]).join('; '),
  ])
  const page = replaceTable(readDoc('docs/cli.md'), '| exit code | error |', rows)
  await expect(page, CHANGED).toMatchFileSnapshot('../../docs/cli.md')
})

test('docs/cli.md names only commands, options and settings that exist', () => {
  const page = readDoc('docs/cli.md')
  const flags = new Set([
    ...commandTree(ev).flatMap(({ options }) => options.map(({ long }) => long)),
    ...SETTINGS.map(({ flag }) => flag),
  ])
  const named = [...page.matchAll(/(?<![\w-])--[a-z][a-z-]*/g)].map(([flag]) => flag)
  expect(named.length).toBeGreaterThan(30)
  expect(named.filter(flag => !flags.has(flag))).toEqual([])
  const names = new Set(commandTree(ev).map(pathOf))
  const lines = [...page.matchAll(/(?:`|^)(?:npx )?(ev [a-z][a-z-]*)/gm)].map(([, name]) => name)
  expect(lines.filter(name => !names.has(name ?? ''))).toEqual([])
})

test('docs/cli.md names the commands that work on a service', () => {
  const [, sentence = ''] =
    /These commands work on a service: (.*?)\.\s/.exec(readDoc('docs/cli.md')) ?? []
  const named = [...sentence.matchAll(/`([a-z]+)`/g)].map(([, name = '']) => name)
  const onService = commands.filter(one => one instanceof EvCommand && one.runsOn === 'service')
  const names = new Set(onService.map(one => pathOf(one).split(' ')[1] ?? ''))
  expect(named.toSorted()).toEqual([...names].toSorted())
  const left = commands.filter(
    one => names.has(pathOf(one).split(' ')[1] ?? '') && !onService.includes(one),
  )
  expect(left.map(pathOf)).toEqual([])
})
