import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { REPLY_FIXTURES, replyRows } from './reply-fixtures.ts'

const README = readFileSync(join(REPLY_FIXTURES, 'README.md'), 'utf8')

/** Counts how often each value occurs. */
function countBy(keys: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const key of keys) counts[key] = (counts[key] ?? 0) + 1
  return counts
}

test('each row has the stated columns', () => {
  const rows = replyRows.map(({ line }) => line)
  const wrong = rows.filter(
    line =>
      !/^(?:greeting|ehlo|mail|rcpt)\t\d{3}\t(?:[245]\.\d{1,3}\.\d{1,3})?\t[^\t\r]*\t(?:accepted|rejected|blocked|deferred|no-response)\t[a-z0-9-]+\t[^\t\r]*$/.test(
        line,
      ),
  )
  expect(wrong).toEqual([])
})

test('no reply occurs twice', () => {
  const replies = replyRows.map(({ line }) => line.split('\t').slice(0, 4).join('\t'))
  expect(replies.filter((one, i) => replies.indexOf(one) !== i)).toEqual([])
})

test('the README states the number of rows, for each file and each meaning', () => {
  const [, total] = /Each of ([\d,]+) rows/.exec(README) ?? []
  expect(total?.replace(',', '')).toBe(String(replyRows.length))
  const files = README.matchAll(/^\| `([\w-]+\.tsv)` \| (\d+) \|/gm)
  expect(Object.fromEntries([...files].map(([, file, rows]) => [file, Number(rows)]))).toEqual(
    countBy(replyRows.map(({ file }) => file)),
  )
  const meanings = README.matchAll(/^\| `([\w-]+)` \| `([\w-]+)` \| (\d+) \|/gm)
  expect(
    Object.fromEntries(
      [...meanings].map(([, kind, why, rows]) => [`${kind}/${why}`, Number(rows)]),
    ),
  ).toEqual(countBy(replyRows.map(({ kind, why }) => `${kind}/${why}`)))
})
