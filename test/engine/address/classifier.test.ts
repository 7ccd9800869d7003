import { describe, expect, test } from 'vitest'
import { type Address, isFault, parseAddress } from '../../../src/engine/address/address.ts'
import { type ClassifierOptions, createClassifier } from '../../../src/engine/address/classifier.ts'
import { rows } from './rows.ts'

function address(text: string): Address {
  const parsed = parseAddress(text)
  if (isFault(parsed)) throw new Error(`${text}: ${parsed.message}`)
  return parsed
}

const flagsOf = (text: string, options?: ClassifierOptions) =>
  createClassifier(options).of(address(text))

describe('disposable', () => {
  test.each(['ann@mailinator.com', 'ann@a.b.mailinator.com', 'ann@YOPMAIL.com'])(
    '%s is disposable by its domain or a parent domain',
    text => expect(flagsOf(text).disposable).toBe(true),
  )

  test.each([
    ...['ann@gmail.com', 'ann@mail.ru', 'ann@sify.com', 'ann@firm.example', 'ann@example.com'],
    // Public suffixes with many owners: one disposable tenant must not flag the others.
    ...['ann@firm.duckdns.org', 'ann@firm.com.ar', 'ann@firm.eu.org', 'ann@firm.web.id'],
  ])('%s is not disposable', text => expect(flagsOf(text).disposable).toBe(false))

  test.each([
    'x7@duck.com',
    'x7@privaterelay.appleid.com',
    'x7@mozmail.com',
    'x7@ann.anonaddy.com',
    'x@simplelogin.com',
  ])('%s is a relay, never disposable, and not of low quality', text => {
    expect(flagsOf(text)).toMatchObject({ relay: true, disposable: false, quality: null })
  })

  test('custom entries are added, and the allow list takes precedence', () => {
    const options = { disposable: ['Throw.Example'], allow: ['mailinator.com', 'ok.throw.example'] }
    expect(flagsOf('ann@x.throw.example', options).disposable).toBe(true)
    expect(flagsOf('ann@ok.throw.example', options).disposable).toBe(false)
    expect(flagsOf('ann@x.mailinator.com', options).disposable).toBe(false)
  })

  test('an exchanger of a disposable service is flagged, a shared one never', () => {
    const { disposableHost } = createClassifier({ allow: ['yopmail.com'] })
    expect(disposableHost('mail2.Mailinator.com.', 'a.example')).toBe(true)
    expect(disposableHost('mail.wabblywabble.com', 'a.example')).toBe(true)
    expect(disposableHost('mx.yopmail.com', 'a.example')).toBe(false)
    for (const host of ['aspmx.l.google.com', 'mx1.forwardemail.net', 'route1.mx.cloudflare.net']) {
      expect(disposableHost(host, 'a.example')).toBe(false)
    }
  })

  test('an allowed domain is not flagged, whatever its exchanger', () => {
    const { disposableHost } = createClassifier({ allow: ['firm.example'] })
    expect(disposableHost('mail2.mailinator.com', 'shop.firm.example')).toBe(false)
    expect(disposableHost('mail2.mailinator.com', 'other.example')).toBe(true)
  })
})

describe('blocked and spam traps', () => {
  test('match domains with their subdomains, and whole addresses', () => {
    const options = { blocked: ['bad.example', '@worse.example'], spamTrap: ['Trap@firm.example'] }
    expect(flagsOf('ann@x.bad.example', options)).toMatchObject({ blocked: true, spamTrap: false })
    expect(flagsOf('ann@worse.example', options).blocked).toBe(true)
    expect(flagsOf('trap@FIRM.example', options)).toMatchObject({ blocked: false, spamTrap: true })
    expect(flagsOf('ann@firm.example', options)).toMatchObject({ blocked: false, spamTrap: false })
  })

  test('match all spellings of an address, and both forms of a domain', () => {
    const options = { blocked: ['ann@gmail.com', 'grå.example'] }
    expect(flagsOf('A.n.n+x@googlemail.com', options).blocked).toBe(true)
    expect(flagsOf('ann@xn--gr-zia.example', options).blocked).toBe(true)
  })

  test('accept any spelling of an address as an entry', () => {
    const options = { blocked: ['A.n.n+news@googlemail.com', 'Bob@Firm.example'] }
    expect(flagsOf('ann@gmail.com', options).blocked).toBe(true)
    expect(flagsOf('BOB@firm.example', options).blocked).toBe(true)
    expect(flagsOf('bobby@firm.example', options).blocked).toBe(false)
  })

  test('ignore empty entries', () => {
    expect(flagsOf('ann@firm.example', { blocked: ['', ' '] }).blocked).toBe(false)
  })
})

describe('role', () => {
  test.each(rows('role'))('%s is the name of a %s', (local, who) => {
    expect(flagsOf(`${local}@firm.example`).role).toBe(who === 'role')
  })

  test('custom names are added', () => {
    expect(flagsOf('Casework@firm.example', { role: ['casework'] }).role).toBe(true)
    expect(flagsOf('front.desk+x@firm.example', { role: ['Front-Desk'] }).role).toBe(true)
  })
})

describe('free', () => {
  test.each(['ann@gmail.com', 'ann@gmx.de', 'ann@proton.me', 'ann@qq.com', 'ann@yahoo.co.uk'])(
    '%s is a free provider',
    text => expect(flagsOf(text).free).toBe(true),
  )

  test.each(['ann@firm.example', 'ann@gmsil.com', 'ann@mailinator.com', 'ann@google.com'])(
    '%s is not a free provider',
    text => expect(flagsOf(text).free).toBe(false),
  )
})

describe('quality', () => {
  test.each(rows('quality'))('of %s is %s', (local, quality) => {
    expect(flagsOf(`${local}@firm.example`).quality).toBe(quality === 'low' ? 'low' : null)
  })
})

describe('canonical', () => {
  test.each(rows('canonical'))('of %s is %s', (text = '', canonical) => {
    expect(flagsOf(text).canonical).toBe(canonical)
  })

  test('of a canonical address is itself', () => {
    for (const [, canonical = ''] of rows('canonical')) {
      expect(flagsOf(canonical).canonical).toBe(canonical)
    }
  })
})
