import { expect, test } from 'vitest'
import { rowText } from '../../../src/cli/bulk/row-text.ts'
import { detectDialect } from '../../../src/csv/csv.ts'
import { sandboxResult } from '../../../src/engine/sandbox.ts'
import { fakeClock } from '../../support/clock.ts'

const DIALECT = detectDialect(Buffer.from('id,email\n1,a@one.test\n'))

test('replaces a lone surrogate in JSON, and keeps text that looks like its escape', () => {
  const result = { ...sandboxResult(fakeClock(), 'valid@x.example'), email: '\ud83d@\\ud83d' }
  const cells = ['\udca9', '\\ud83d']
  const row = { row: 1, line: 2, cells, text: '' }
  const [text = ''] = rowText('ndjson', DIALECT, { raw: false, policy: 'balanced' }).rows([
    { row, result },
  ])
  expect(JSON.parse(text)).toMatchObject({
    input: { id: '\ufffd', email: '\\ud83d' },
    result: { email: '\ufffd@\\ud83d' },
  })
})

test('writes each row of NDJSON in one line', () => {
  const row = { row: 7, line: 9, cells: ['a\r\nb\u2028c', 'x\ny'], text: '' }
  const result = sandboxResult(fakeClock(), 'valid@x.example')
  const [text = ''] = rowText('ndjson', DIALECT, { raw: false, policy: 'balanced' }).rows([
    { row, result },
  ])
  expect(text.match(/[\r\n]/g)).toEqual(['\n'])
  expect(text).toMatch(/^\{"row":7,"input":\{"id":.*\}\n$/s)
})
