import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { type FormRules, receiveForm } from '../../../src/jobs/import/multipart-form.ts'
import { tempFolder } from '../../support/database.ts'
import { FORM, form } from '../../support/list-form.ts'

// The API errors for malformed forms are tested with their path (test/api/lists/file.test.ts).

type Part = readonly [name: string, value: string | { file: string; name: string }]

async function receive(parts: readonly Part[], rules: Partial<FormRules> = {}) {
  const path = join(tempFolder(), 'file')
  const formRules = { fileFields: ['file', 'rows'], fileBytesMax: 1_000, ...rules } as const
  const body = form(parts) as Uint8Array<ArrayBuffer>
  const headers = { 'Content-Type': FORM }
  const request = new Request('https://ev.test/', { method: 'POST', headers, body })
  const received = await receiveForm(request, path, formRules).catch(error => ({ error }))
  return { received, path }
}

const EMPTY = { file: '', name: '' }

test.each<[string, readonly Part[], string, string]>([
  [
    'a file and no pasted rows',
    [
      ['file', { file: 'a', name: 'a.csv' }],
      ['rows', ''],
    ],
    'a',
    'a.csv',
  ],
  [
    'rows, and no file',
    [
      ['file', EMPTY],
      ['rows', 'b'],
    ],
    'b',
    '',
  ],
  [
    'rows before the file',
    [
      ['rows', 'b'],
      ['file', EMPTY],
    ],
    'b',
    '',
  ],
])('the list is the part that is not empty: %s', async (_, parts, text, fileName) => {
  const { received, path } = await receive([...parts, ['name', 'March']])
  expect(received).toMatchObject({ fileName, size: 1 })
  expect('fields' in received && [...received.fields]).toEqual([['name', 'March']])
  expect(readFileSync(path, 'utf8')).toBe(text)
})

test('rejects a form with both a file and pasted rows', async () => {
  const { received } = await receive([
    ['file', { file: 'a', name: 'a.csv' }],
    ['rows', 'b'],
  ])
  expect(received).toMatchObject({ error: { kind: 'several-files' } })
  expect('error' in received && String(received.error)).toContain('more than one file')
})

test('stores nothing of a form that its fields before the file reject', async () => {
  const admit = (fields: ReadonlyMap<string, string>) => {
    if (fields.get('_csrf') !== 'right') throw new Error('refused')
  }
  const file = { file: 'a'.repeat(900), name: 'a.csv' }
  const csrfLast = await receive(
    [
      ['file', file],
      ['_csrf', 'right'],
    ],
    { admit },
  )
  const wrongToken = await receive(
    [
      ['_csrf', 'wrong'],
      ['file', file],
    ],
    { admit },
  )
  for (const { received, path } of [csrfLast, wrongToken]) {
    expect('error' in received && received.error.message).toBe('refused')
    expect(existsSync(path)).toBe(false)
  }
  const rightToken = await receive(
    [
      ['_csrf', 'right'],
      ['file', file],
    ],
    { admit },
  )
  expect(rightToken.received).toMatchObject({ size: 900 })
})

test('reports an incomplete form if its sender disconnects', async () => {
  const abort = new AbortController()
  const body = new ReadableStream({
    pull(controller) {
      abort.abort()
      controller.error(new Error('the client is gone'))
    },
  })
  const cut = { body, headers: new Headers({ 'Content-Type': FORM }), signal: abort.signal }
  const rules = { fileFields: ['file'], fileBytesMax: 9 } as const
  await expect(receiveForm(cut, join(tempFolder(), 'file'), rules)).rejects.toMatchObject({
    kind: 'cut-off',
  })
})
