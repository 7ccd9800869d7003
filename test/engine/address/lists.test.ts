import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  isListed,
  REAL_PROVIDERS,
  RELAYS,
  withParents,
} from '../../../src/engine/address/name-list.ts'
import { OPERATOR_ROWS } from '../../../src/engine/dns/operators.ts'

const LISTS = join(import.meta.dirname, '../../../src/engine/address/lists')
const namesOf = (file: string) => readFileSync(join(LISTS, file), 'utf8').split('\n').slice(0, -1)
const files = ['disposable.txt', 'free.txt', 'role.txt']

describe('the built-in lists', () => {
  test.each(files)('%s is sorted, without duplicates, in lower case, one name per line', file => {
    const names = namesOf(file)
    expect(names.length).toBeGreaterThan(900)
    expect(names).toEqual([...new Set(names)].sort((a, b) => (a < b ? -1 : 1)))
    expect(names.filter(name => !/^[a-z0-9._-]+$/.test(name))).toEqual([])
  })

  test('no real provider is disposable', () => {
    const real = new Set([...REAL_PROVIDERS, ...RELAYS])
    expect(namesOf('disposable.txt').filter(name => real.has(name))).toEqual([])
  })

  test('no domain of a mail operator or a well-known sender is disposable', () => {
    const listed = new Set(namesOf('disposable.txt'))
    const operators = OPERATOR_ROWS.flatMap(([, , , suffixes]) => suffixes.split(' '))
    const senders = ['facebookmail.com', 'apache.org', 'linkedin.com', 'github.com']
    expect([...operators, ...senders].filter(name => listed.has(name))).toEqual([])
  })

  // The domains of each row are on exactly one list of disposable domains.
  test.each([
    ['Microsoft', 'live.de live.dk live.no live.cn live.co.kr live.com.ar live.com.mx live.in'],
    ['Orange', 'wanadoo.es orange.net'],
    ['Fastmail', 'fastmail.us fastmail.es fastmail.nl fastmail.se fastmail.jp'],
    ['others', 'gmx.es home.de cinci.rr.com nextmail.ru fromru.com'],
  ])('one list of disposable domains does not outvote a provider: %s', (_, names) => {
    const unlisted = names.split(' ').filter(name => !isListed('free', name))
    expect(unlisted).toEqual([])
  })

  test('a domain is free or disposable, and neither if as many lists say one as the other', () => {
    const disposable = new Set(namesOf('disposable.txt'))
    const both = namesOf('free.txt').filter(name =>
      withParents(name).some(up => disposable.has(up)),
    )
    expect(both).toEqual([])
    for (const name of ['30minutesmail.com', 'dumpmail.com', 'discard-email.cf'])
      expect([isListed('free', name), isListed('disposable', name)]).toEqual([false, false])
  })

  test('disposable services are listed, each domain once for all its subdomains', () => {
    const listed = new Set(namesOf('disposable.txt'))
    const services = ['mailinator.com', 'yopmail.com', 'guerrillamail.com', 'temp-mail.org']
    expect(services.filter(name => !listed.has(name))).toEqual([])
    const covered = [...listed].filter(name =>
      withParents(name)
        .slice(1)
        .some(parent => listed.has(parent)),
    )
    expect(covered).toEqual([])
  })

  test('every name is found, and no other', () => {
    for (const list of ['disposable', 'free', 'role'] as const) {
      const names = namesOf(`${list}.txt`)
      const known = new Set(names)
      const some = names.filter((_, index) => index % 97 === 0 || index === names.length - 1)
      for (const name of some) {
        expect(isListed(list, name)).toBe(true)
        expect(isListed(list, `${name}-`)).toBe(false)
        expect(isListed(list, name.slice(0, -1))).toBe(known.has(name.slice(0, -1)))
      }
    }
    expect(isListed('free', '')).toBe(false)
  })
})
