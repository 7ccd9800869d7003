import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { LiveText } from '../../src/cli/live-text.ts'
import { emptyFolder, memoryContext, runEv } from '../support/cli.ts'
import { screen } from '../support/screen.ts'

function liveText(columns?: number) {
  const { context } = memoryContext(columns === undefined ? { home: '/' } : { home: '/', columns })
  const live = new LiveText(context)
  onTestFinished(() => live.end())
  return { live, stderr: context.stderr }
}

test('text printed while lines are shown appears above them; the end removes them', async () => {
  const { live, stderr } = liveText(80)
  const terminal = screen(80)
  live.show(() => ['50%', 'deliverable 3'])
  live.print('warning: slow\n')
  await terminal.write(stderr.text)
  expect(terminal.lines()).toEqual([
    'warning: slow',
    expect.stringMatching(/^\S 50%$/),
    '  deliverable 3',
  ])
  stderr.text = ''
  live.end()
  await terminal.write(stderr.text)
  expect(terminal.lines()).toEqual(['warning: slow'])
  expect(stderr.listenerCount('resize')).toBe(0)
})

test('a narrower terminal shows no rest of the old lines', async () => {
  const { live, stderr } = liveText(80)
  const terminal = screen(80)
  live.print('2 rows.\n')
  live.show(width => ['x'.repeat(width - 1), `${width} columns`])
  await terminal.write(stderr.text)
  stderr.text = ''
  Object.assign(stderr, { columns: 30 })
  terminal.resize(30)
  stderr.emit('resize')
  live.print('a warning\n')
  await terminal.write(stderr.text)
  expect(terminal.lines()).toEqual([
    ...['2 rows.', 'a warning'],
    expect.stringMatching(/^\S x{27}$/),
    '  28 columns',
  ])
})

test('nothing is drawn if stderr is not a terminal; text is printed', () => {
  const { live, stderr } = liveText()
  live.show(() => ['50%'])
  live.print('2 rows.\n')
  live.end()
  expect(stderr.text).toBe('2 rows.\n')
})

test.each([
  ['verify', 'valid@x.example', 'invalid@y.example'],
  ['bulk', 'list.csv'],
])('a terminal that cannot move its cursor gets no control characters: ev %s', async (...args) => {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), 'valid@x.example\ninvalid@y.example\n')
  const inTerminal = (TERM: string) =>
    runEv([...args, '--sandbox'], { home, offline: true, columns: 80, environment: { TERM } })
  const [drawn, plain] = [await inTerminal('xterm'), await inTerminal('dumb')]
  expect(drawn.stderr).toContain('\u001b')
  expect(plain.stderr).not.toContain('\u001b')
  expect(plain.code).toBe(drawn.code)
})
