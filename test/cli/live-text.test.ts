import { expect, test } from 'vitest'
import { LiveText } from '../../src/cli/live-text.ts'
import { memoryContext } from '../support/cli.ts'

const CLEARED = '\r\u001b[J'

function liveText(columns?: number) {
  const { context } = memoryContext(columns === undefined ? { home: '/' } : { home: '/', columns })
  return { live: new LiveText(context), stderr: context.stderr }
}

test('text printed while lines are shown appears above them', () => {
  const { live, stderr } = liveText(80)
  live.show(() => ['50 %'])
  live.print('warning: slow\n')
  live.end()
  expect(stderr.text).toBe(`50 %${CLEARED}warning: slow\n50 %${CLEARED}`)
})

test('a resize clears every row that the old lines take now, and draws for the new width', () => {
  const { live, stderr } = liveText(80)
  live.show(width => ['x'.repeat(width - 1)])
  Object.assign(stderr, { columns: 30 })
  stderr.emit('resize')
  // 79 characters take three rows of 30.
  expect(stderr.text).toBe(`${'x'.repeat(79)}\r\u001b[2A\u001b[J${'x'.repeat(29)}`)
  live.end()
  expect(stderr.listenerCount('resize')).toBe(0)
})

test('nothing is drawn if stderr is not a terminal; text is printed', () => {
  const { live, stderr } = liveText()
  live.show(() => ['50 %'])
  live.print('2 rows.\n')
  live.end()
  expect(stderr.text).toBe('2 rows.\n')
})
