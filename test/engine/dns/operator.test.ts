import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  type CustomOperator,
  createMxOperatorReader,
  titleParser,
} from '../../../src/engine/dns/operator-table.ts'
import { OPERATOR_ROWS } from '../../../src/engine/dns/operators.ts'
import { EvError } from '../../../src/platform/error.ts'

const FIXTURE = join(import.meta.dirname, '../../../fixtures/operator/hosts.tsv')
const hosts = readFileSync(FIXTURE, 'utf8')
  .trimEnd()
  .split('\n')
  .slice(1)
  .map(line => line.split('\t') as [host: string, name: string, truth: string, note: string])

const operators = createMxOperatorReader()

describe('without configuration', () => {
  test.each(hosts)('%s is run by %s (%s) %s', (host, name, truth) => {
    expect(operators.of(host)).toMatchObject({ name, truth })
  })

  test('a name outside the table is not a known operator', () => {
    expect(operators.isKnown(operators.of('mx1.company.test').name)).toBe(false)
    expect(operators.isKnown(operators.of('aspmx.l.google.com').name)).toBe(true)
    expect(operators.isKnown('constructor')).toBe(false)
  })

  test('two hosts of one unknown domain have one operator', () => {
    expect(operators.of('mx1.company.test').name).toBe(operators.of('mx2.eu.company.test').name)
  })
})

describe('configured operators', () => {
  const own = (config: Record<string, Partial<CustomOperator>>) =>
    createMxOperatorReader(
      Object.fromEntries(
        Object.entries(config).map(([name, one]) => [
          name,
          { hosts: [], title: null, truth: null, ...one },
        ]),
      ),
    )

  test('match by the longest host suffix of their exchangers', () => {
    const { of } = own({
      acme: { hosts: ['acme.test', 'acme.example'], title: 'Acme Mail', truth: 'tenant' },
      filter: { hosts: ['filter.acme.test'], truth: 'gateway' },
    })
    const acme = { name: 'acme', title: 'Acme Mail', truth: 'tenant' }
    expect(of('mx1.eu.Acme.Test.')).toEqual(acme)
    expect(of('acme.example')).toEqual(acme)
    expect(of('mx.filter.acme.test')).toEqual({
      name: 'filter',
      title: 'filter',
      truth: 'gateway',
    })
    expect(of('mx.notacme.test').name).toBe('notacme.test')
  })

  test('take precedence over the table, even over a longer suffix there', () => {
    const { of } = own({ acme: { hosts: ['outlook.com'] } })
    expect(of('a-com.mail.protection.outlook.com').name).toBe('acme')
    expect(of('mx.hotmail.com').name).toBe('outlook')
  })

  test('of the table keep unset values and can add hosts', () => {
    const { of, isKnown } = own({ google: { hosts: ['mx.acme.test'], truth: 'tenant' } })
    const google = { name: 'google', title: 'Google', truth: 'tenant' }
    expect(of('aspmx.l.google.com')).toEqual(google)
    expect(of('mx.acme.test')).toEqual(google)
    expect(of('mx.yahoo.com')).toEqual(operators.of('mx.yahoo.com'))
    expect(isKnown('google')).toBe(true)
  })

  test('without hosts are named by their domain', () => {
    const { of } = own({ 'company.test': { truth: 'accepts-all', title: 'Our customer' } })
    const company = { name: 'company.test', title: 'Our customer', truth: 'accepts-all' }
    expect(of('mx.company.test')).toEqual(company)
    expect(of('mx.other.test').truth).toBe('tells')
  })

  test('are known if truth is configured', () => {
    const { isKnown } = own({
      sure: { hosts: ['sure.test'], truth: 'tells' },
      slow: { hosts: ['slow.test'] },
    })
    expect([isKnown('sure'), isKnown('slow')]).toEqual([true, false])
  })

  test.each<[string, Record<string, Partial<CustomOperator>>, RegExp]>([
    ['a misspelled one', { gogle: {} }, /"gogle"\. Did you mean "google"\?/],
    ['one by its title', { 'Microsoft365.': {} }, /Did you mean "microsoft-365"\?/],
    [
      'one that is like none',
      { zzyzx: {} },
      /"zzyzx"\. This is not a known operator\. .*"hosts": \[/,
    ],
    [
      'a domain of another',
      { 'google.com': {} },
      /"google\.com"\. Its exchangers belong to "google"/,
    ],
    [
      'hosts of two',
      { a: { hosts: ['mx.test'] }, b: { hosts: ['mx.test'] } },
      /assigns the hosts mx\.test to "a" and to "b"/,
    ],
  ])('%s are rejected with a remedy', (_, config, message) => {
    expect(() => own(config)).toThrow(message)
    expect(() => own(config)).toThrow(EvError)
  })
})

describe('the table', () => {
  const names = OPERATOR_ROWS.map(([name]) => name)
  const suffixes = OPERATOR_ROWS.flatMap(([, , , list]) => list.split(' '))

  test('has at least 60 operators', () => {
    expect(OPERATOR_ROWS.length).toBeGreaterThanOrEqual(60)
  })

  test('assigns each suffix to one operator', () => {
    expect(suffixes.filter((suffix, i) => suffixes.indexOf(suffix) !== i)).toEqual([])
  })

  test('has one row per name, and names in kebab case', () => {
    expect(new Set(names).size).toBe(OPERATOR_ROWS.length)
    expect(names.filter(name => !/^[a-z0-9]+(-[a-z0-9]+)*$/.test(name))).toEqual([])
  })

  test('has suffixes of two labels or more, in lower case', () => {
    expect(suffixes.filter(suffix => !/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(suffix))).toEqual([])
  })

  test('matches every suffix', () => {
    for (const [name, , , list] of OPERATOR_ROWS) {
      for (const suffix of list.split(' ')) expect(operators.of(`mx.${suffix}`).name).toBe(name)
    }
  })
})

describe('the title of an operator', () => {
  const titleOf = titleParser({ google: { title: 'G' }, outlook: { title: null } })

  test('is the configured one, else that of the table, else the name', () => {
    expect(['google', 'outlook', 'yahoo', 'mx.test', 'constructor'].map(titleOf)).toEqual([
      ...['G', 'Outlook.com', 'Yahoo', 'mx.test', 'constructor'],
    ])
  })
})
