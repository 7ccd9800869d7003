import { describe, expect, test } from 'vitest'
import { attachment, downloadName } from '../../../src/api/jobs/download-name.ts'

const nameFor = (listName: string | null, names: readonly string[] = [], isPartial = false) =>
  downloadName({ id: 'job_a', listName, names, isPartial, extension: 'csv' })

describe('the name of a download', () => {
  test('is that of the list with the classes, or with `verified` for all', () => {
    expect(nameFor('customers.csv', ['deliverable'])).toBe('customers-deliverable.csv')
    expect(nameFor('customers.csv', ['risky', 'unknown'])).toBe('customers-risky-unknown.csv')
    expect(nameFor('customers.csv')).toBe('customers-verified.csv')
    expect(nameFor('customers.csv.gz')).toBe('customers-verified.csv')
    expect(nameFor('customers.zip')).toBe('customers-verified.csv')
    expect(nameFor('Customers, March 2026.XLSX')).toBe('Customers, March 2026-verified.csv')
  })

  test('says partial while the list is not completed', () => {
    expect(nameFor('customers.csv', undefined, true)).toBe('customers-verified-partial.csv')
    expect(nameFor('customers.csv', ['risky'], true)).toBe('customers-risky-partial.csv')
    expect(nameFor(null, undefined, true)).toBe('job_a-partial.csv')
  })

  test('is the ID of a list without a name', () => {
    expect(nameFor(null)).toBe('job_a.csv')
    expect(nameFor(null, ['risky'])).toBe('job_a-risky.csv')
    expect(nameFor('../..')).toBe('job_a.csv')
    expect(nameFor('\u0000 /')).toBe('job_a.csv')
  })

  test.each([
    ['../../etc/passwd', 'etc passwd-verified.csv'],
    ['C:\\lists\\a.csv', 'C lists a-verified.csv'],
    ['a"b\r\nX-Evil: 1', 'a b X-Evil 1-verified.csv'],
    ['.hidden', 'hidden-verified.csv'],
    ['a\u202Efdp.csv', 'a fdp-verified.csv'],
    ['\uD800x', 'x-verified.csv'],
    ['a. .', 'a-verified.csv'],
  ])('of the list %j is safe: %s', (listName, name) => {
    expect(nameFor(listName)).toBe(name)
  })

  test('fits the 255 bytes of a file system', () => {
    expect(Buffer.byteLength(nameFor('🎉'.repeat(200)))).toBeLessThanOrEqual(255)
  })
})

test.each([
  ['a-b.csv', 'attachment; filename="a-b.csv"'],
  [
    "Käufer's (1).csv",
    `attachment; filename="K_ufer's (1).csv"; filename*=UTF-8''K%C3%A4ufer%27s%20%281%29.csv`,
  ],
  ['🎉.csv', `attachment; filename="_.csv"; filename*=UTF-8''%F0%9F%8E%89.csv`],
  ['50%.csv', `attachment; filename="50_.csv"; filename*=UTF-8''50%25.csv`],
])('the header that saves a response as %s is %s', (name, header) => {
  expect(attachment(name)).toBe(header)
})
