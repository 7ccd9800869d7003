import { describe, expect, test } from 'vitest'
import { REASONS, VERDICT_BY_REASON } from '../../src/engine/verdict/reason.ts'
import type { Class, Result } from '../../src/engine/verdict/verdict.ts'
import { VOCABULARIES, type Vocabulary } from '../../src/formats/vocabulary/names.ts'
import { getVocabularyColumns } from '../../src/formats/vocabulary/vocabulary.ts'
import { resultOf } from '../support/result.ts'

/** The columns that say what is known about the address, and the words for it by class. */
const STATUS: Readonly<Record<Vocabulary, readonly [column: string, Record<Class, string[]>]>> = {
  zerobounce: [
    'ZB Status',
    {
      deliverable: ['valid'],
      risky: ['catch-all', 'do_not_mail', 'spamtrap'],
      undeliverable: ['invalid'],
      unknown: ['unknown'],
    },
  ],
  neverbounce: [
    'email_status',
    {
      deliverable: ['valid'],
      risky: ['catchall', 'disposable', 'invalid', 'unknown'],
      undeliverable: ['invalid'],
      unknown: ['unknown'],
    },
  ],
  kickbox: [
    'result',
    {
      deliverable: ['deliverable'],
      risky: ['risky'],
      undeliverable: ['undeliverable'],
      unknown: ['unknown'],
    },
  ],
  reacher: [
    'is_reachable',
    {
      deliverable: ['safe'],
      risky: ['risky'],
      undeliverable: ['invalid'],
      unknown: ['unknown'],
    },
  ],
}

function valuesOf(vocabulary: Vocabulary, result: Result | null, klass: Class) {
  const columns = getVocabularyColumns(vocabulary, { width: 0 })
  const values = columns.values({ email: result?.email ?? '', class: klass, result })
  return Object.fromEntries(columns.names.map((name, n) => [name, values[n]]))
}

describe.each(VOCABULARIES)('the words of %s', vocabulary => {
  const [column, words] = STATUS[vocabulary]

  test.each(REASONS)('do not change the class of %s', reason => {
    const klass = VERDICT_BY_REASON[reason].class
    const values = valuesOf(vocabulary, resultOf(reason), klass)
    expect(words[klass]).toContain(values[column])
  })

  test('say of an erased address only what its class says', () => {
    const values = valuesOf(vocabulary, null, 'risky')
    expect(words.risky).toContain(values[column])
    expect(values.checked_by).toBeNull()
    expect(Object.values(values).filter(value => String(value).includes('@'))).toEqual([])
  })

  test('mark a simulated result', () => {
    const real = resultOf('accepted_email')
    const simulated = { ...real, evidence: { ...real.evidence, skipped: 'sandbox' as const } }
    expect(valuesOf(vocabulary, real, 'deliverable').checked_by).toBe('ev')
    expect(valuesOf(vocabulary, simulated, 'deliverable').checked_by).toBe('sandbox')
  })
})

test('a catch-all address to which mail arrived is valid', () => {
  const risky = resultOf('catch_all')
  const confirmed: Result = { ...risky, verdict: { ...risky.verdict, risk: 'low' } }
  expect(valuesOf('zerobounce', confirmed, 'deliverable')).toMatchObject({
    'ZB Status': 'valid',
    'ZB Sub Status': 'accept_all',
  })
  expect(valuesOf('kickbox', confirmed, 'deliverable').reason).toBe('accepted_email')
})

test('the confidence of ev is not written as a quality score', () => {
  expect(valuesOf('kickbox', resultOf('rejected_email'), 'undeliverable').sendex).toBeNull()
})
