import stringWidth from 'string-width'
import { expect, onTestFinished, test, vi } from 'vitest'
import { printMessage, printText, timeText } from '../../src/cli/print.ts'
import { keyValues, table } from '../../src/cli/table.ts'
import { textWidth, widthOf, wrapLines } from '../../src/cli/width.ts'
import { memoryContext } from '../support/cli.ts'

const COLUMNS = [
  { title: 'ID' },
  { title: 'ROWS', align: 'right', dropRank: 2 },
  { title: 'TYPE', dropRank: 1 },
  { title: 'LIST' },
] as const
const ROWS = [['job_a', '12', 'list', 'customers of 2026.csv']]

test('a table without a limit shows every column', () => {
  expect(table(COLUMNS, ROWS)).toBe(
    'ID     ROWS  TYPE  LIST\njob_a    12  list  customers of 2026.csv\n',
  )
})

test('a table that is too wide leaves out columns by rank, then wraps the widest', () => {
  expect(table(COLUMNS, ROWS, 36)).toBe('ID     ROWS  LIST\njob_a    12  customers of 2026.csv\n')
  expect(table(COLUMNS, ROWS, 20)).toBe('ID     LIST\njob_a  customers of\n       2026.csv\n')
})

test('a table that is too wide keeps words such as a state whole', () => {
  const columns = [{ title: 'ID' }, { title: 'STATE' }, { title: 'LIST' }]
  const rows = [['job_a', 'completed', 'customers.csv']]
  expect(table(columns, rows, 20)).toContain('job_a  completed  customers.\n')
})

test('wide characters take two columns', () => {
  const rows = [
    ['東京', 'x'],
    ['a', 'y'],
  ]
  expect(table([{ title: 'A' }, { title: 'B' }], rows)).toBe('A     B\n東京  x\na     y\n')
})

test('values are wrapped below themselves', () => {
  const pairs = [
    ['state', 'stopped; to continue it, run again'],
    ['output', null],
  ] as const
  expect(keyValues(pairs, { width: 30 })).toBe(
    '  state  stopped; to continue\n         it, run again\n',
  )
})

test('COLUMNS of the environment wins over the terminal; a pipe has no width', () => {
  const width = (columns?: number, environment: Record<string, string> = {}) => {
    const { context } = memoryContext({
      home: '/',
      environment,
      ...(columns === undefined ? {} : { columns }),
    })
    return widthOf(context, context.stdout)
  }
  expect([width(), width(60), width(0)]).toEqual([null, 60, null])
  expect([width(60, { COLUMNS: '100' }), width(undefined, { COLUMNS: 'x' })]).toEqual([100, null])
})

test('a message is wrapped only on a terminal; words and commands are not broken', () => {
  const print = (columns?: number) => {
    const { context } = memoryContext({ home: '/', ...(columns === undefined ? {} : { columns }) })
    printMessage(context, 'error', 'There is no file /srv/lists/2026/customers.csv. Run "ev jobs".')
    return context.stderr.text
  }
  expect(print()).toBe('error: There is no file /srv/lists/2026/customers.csv. Run "ev jobs".\n')
  expect(print(24)).toBe(
    'error: There is no file\n/srv/lists/2026/customers.csv.\nRun "ev jobs".\n',
  )
  expect(print(11)).toContain('\nRun\n"ev jobs".\n')
})

test('a text on a terminal is wrapped, and its long words and quoted commands are not broken', () => {
  const print = (columns?: number) => {
    const { context } = memoryContext({ home: '/', ...(columns === undefined ? {} : { columns }) })
    printText(context, 'Created a. Run "ev keys create --name NAME".\n')
    return context.stdout.text
  }
  expect(print()).toBe('Created a. Run "ev keys create --name NAME".\n')
  expect(print(20)).toBe('Created a. Run\n"ev keys create --name NAME".\n')
})

test('lines that fit keep their indentation', () => {
  expect(wrapLines('a b c\n     9  out.csv', 20)).toBe('a b c\n     9  out.csv')
})

test('wrapped lines keep their indentation', () => {
  expect(wrapLines('  one two three\nfour', 10)).toBe('  one two\n  three\nfour')
})

test('a long cell is cut behind its separators', () => {
  const columns = [{ title: 'ID' }, { title: 'LIST' }]
  expect(table(columns, [['a', '/srv/lists/customers.csv']], 17)).toBe(
    'ID  LIST\na   /srv/lists/\n    customers.csv\n',
  )
})

test.each([
  [0, 'UTC'],
  [-60, 'UTC+1'],
  [-330, 'UTC+5:30'],
  [210, 'UTC-3:30'],
])('a time has its zone: an offset of %i minutes is %s', (offset, zone) => {
  const spy = vi.spyOn(Date.prototype, 'getTimezoneOffset').mockReturnValue(offset)
  onTestFinished(() => spy.mockRestore())
  expect(timeText(0)).toMatch(/^19(69|70)-\d\d-\d\d \d\d:\d\d /)
  expect(timeText(0).slice('1970-01-01 00:00 '.length)).toBe(zone)
})

test('the width of a text without wide characters is that of string-width', () => {
  const narrow = Array.from({ length: 0x2800 }, (_, code) => String.fromCharCode(code))
  for (const text of [
    ...narrow,
    'ab…',
    '\u001b[32m✔\u001b[39m ann@example.com',
    '❤️ 1️⃣',
    'é東京',
    '',
  ])
    expect(textWidth(text), JSON.stringify(text)).toBe(stringWidth(text))
})
