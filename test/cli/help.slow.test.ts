import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { commandTree, pathOf } from '../../src/cli/ev-command.ts'
import { emptyFolder, runEv, wholeProgram } from '../support/cli.ts'

const TREE = commandTree(await wholeProgram())
const LEAVES = TREE.filter(({ commands }) => commands.length === 0)
const wordsOf = (command: (typeof TREE)[number]) => pathOf(command).split(' ').slice(1)

test('the tree has the commands at every depth', () => {
  expect(TREE.map(pathOf)).toEqual(expect.arrayContaining(['ev', 'ev feedback sources create']))
  expect(LEAVES.length).toBeGreaterThan(50)
})

describe.each([60, 80, 120])('help on a terminal of %i columns', columns => {
  test.each([
    ['--help', TREE],
    ['--help-all', LEAVES],
  ] as const)(
    '%s of every command fits, has an example, and goes to stdout',
    async (flag, all) => {
      const home = emptyFolder()
      for (const command of all) {
        const args = [...wordsOf(command), flag]
        const { code, stdout, stderr } = await runEv(args, { home, columns, offline: true })
        expect({ code, stderr }, args.join(' ')).toEqual({ code: 0, stderr: '' })
        for (const line of stdout.split('\n')) {
          expect(line.length, `${args.join(' ')}: ${line}`).toBeLessThanOrEqual(columns)
          expect(line, args.join(' ')).not.toMatch(/[“”‘’]|display help|choices:/)
        }
        expect(stdout, args.join(' ')).toMatch(
          new RegExp(`Examples:\\n(?:  .*\\n)*  .*${pathOf(command)}`),
        )
      }
    },
    120_000,
  )

  test('errors in the usage of every command fit, and start with "error: "', async () => {
    const home = emptyFolder()
    for (const command of LEAVES) {
      const args = [...wordsOf(command), '--no-such-option']
      const { code, stdout, stderr } = await runEv(args, { home, columns, offline: true })
      expect({ code, stdout }, args.join(' ')).toEqual({ code: 64, stdout: '' })
      expect(stderr).toMatch(/^error: (Unknown option|Option|Argument) "/)
      for (const line of stderr.split('\n')) expect(line.length).toBeLessThanOrEqual(columns)
    }
  }, 120_000)

  test('a missing argument of every command is answered with usage and examples that fit', async () => {
    const home = emptyFolder()
    const all = LEAVES.filter(({ registeredArguments }) => registeredArguments[0]?.required)
    expect(all.length).toBeGreaterThan(25)
    for (const command of all) {
      const args = wordsOf(command)
      const { code, stdout, stderr } = await runEv(args, { home, columns, offline: true })
      expect({ code, stdout }, args.join(' ')).toEqual({ code: 64, stdout: '' })
      expect(stderr, args.join(' ')).toMatch(
        /^error: (?:Argument|Option) ".*\n\nUsage: ev .*\n\nExamples:\n {2}.*\n\nTo list all options, run/s,
      )
      const lines = stderr.split('\n')
      expect(lines.length, args.join(' ')).toBeLessThan(20)
      for (const line of lines) expect(line.length, line).toBeLessThanOrEqual(columns)
    }
  }, 120_000)
})

/** Each command with a file or folder that does not exist, or is not what it should be. */
const FILE_ERRORS = [
  ['bulk', 'none.csv'],
  ['bulk', '.'],
  ['bulk', 'list.csv', '-o', 'none/out.csv'],
  ['bulk', 'list.csv', '-o', '.'],
  ['bulk', 'list.csv', '-o', 'out.pdf'],
  ['bulk', 'list.csv', '--sandbox', '--data-dir', 'list.csv/data'],
  ['verify', 'a@b.example', '--config', 'none.json'],
  ['verify', 'a@b.example', '--config', '.'],
  ['verify', 'a@b.example', '--disposable-file', 'none.txt'],
  ['feedback', 'import', 'none.csv'],
  ['feedback', 'import', '/root/none/none.csv'],
  ['backup', 'none/ev.sqlite'],
  ['migrate', '--from', 'none', '--to', 'postgres://127.0.0.1:1/ev'],
  ['lists', 'update', 'disposable', 'none.txt', '--disposable-file', 'd.txt'],
  ['simulate', 'none.json'],
  ['simulate', 'list.csv'],
  ['serve', '--port', '0', '--tls-cert', 'none.pem', '--tls-key', 'none.pem'],
  ['serve', '--port', '0', '--data-dir', 'list.csv/data'],
  ['keys', 'create', '--name', 'A', '--data-dir', 'none'],
]

test.each(FILE_ERRORS)(
  'ev %s %s %s %s: a sentence without the code of the system',
  async (...args) => {
    const home = emptyFolder()
    writeFileSync(join(home, 'list.csv'), 'email\nvalid@x.example\n')
    const { code, stdout, stderr } = await runEv(args.filter(Boolean), { home, offline: true })
    expect({ stdout, isExpected: [64, 65, 66, 73, 74, 78].includes(code ?? 0) }).toEqual({
      stdout: '',
      isExpected: true,
    })
    expect(stderr).toMatch(/^error: [A-Z"/a-z-][^`“”‘’]*[.)]\n$/)
    expect(stderr).not.toMatch(/\bE[A-Z]{4,}\b|Internal error|saved/)
  },
)
