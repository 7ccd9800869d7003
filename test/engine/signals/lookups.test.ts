import { describe, expect, test } from 'vitest'
import { listedTypo } from '../../../src/engine/address/typo.ts'
import type { MxOperator } from '../../../src/engine/dns/operators.ts'
import { findPolicySignals } from '../../../src/engine/signals/mail-policies.ts'
import {
  findNetworkSignals,
  findParkingSignals,
  NETWORK_MIN,
  TYPO_DOMAINS,
} from '../../../src/engine/signals/outside-signals.ts'
import { type ZoneEntry, zone } from '../../support/zone.ts'

const { signal } = new AbortController()

describe('policies', () => {
  const NO_MAIL = { 'a.test': { TXT: ['v=spf1 -all', 'other'] } }
  const REJECT = { '_dmarc.a.test': { TXT: ['v=DMARC1; p=reject'] } }
  const find = (records: Record<string, ZoneEntry>, hasMx = true) =>
    findPolicySignals(zone(records), 'a.test', { hasMx, signal })

  test.each<[string, Record<string, ZoneEntry>, number[]]>([
    ['no policy', {}, []],
    ['no mail and a bare reject', { ...NO_MAIL, ...REJECT }, [15]],
    ['no mail alone', NO_MAIL, []],
    ['a reject alone', REJECT, []],
    ['a reject with reports', withDmarc('v=DMARC1; p=reject; rua=mailto:d@a.test'), []],
    ['a quarantine', withDmarc('v=DMARC1; p=quarantine'), []],
    ['spaces and capitals', withDmarc('v=DMARC1 ;  P = Reject ;'), [15]],
    ['a soft failure', { ...REJECT, 'a.test': { TXT: ['v=spf1 ~all'] } }, []],
    ['some senders', { ...REJECT, 'a.test': { TXT: ['v=spf1 mx -all'] } }, []],
    ['two SPF records', { ...REJECT, 'a.test': { TXT: ['v=spf1 -all', 'v=spf1 mx'] } }, []],
    ['MTA-STS', { '_mta-sts.a.test': { TXT: ['v=STSv1; id=2026'] } }, [-5]],
  ])('%s', async (_, records, shifts) => {
    expect((await find(records))?.map(({ shift }) => shift)).toEqual(shifts)
  })

  test('of a domain without MX say nothing about its mail', async () => {
    expect(await find({ ...NO_MAIL, ...REJECT }, false)).toEqual([])
  })

  test.each(['a.test', '_dmarc.a.test', '_mta-sts.a.test'])(
    'a failed lookup of %s is no signal',
    async name => {
      expect(await find({ ...NO_MAIL, ...REJECT, [name]: 'server' })).toBeNull()
    },
  )

  function withDmarc(policy: string): Record<string, ZoneEntry> {
    return { ...NO_MAIL, '_dmarc.a.test': { TXT: [policy] } }
  }
})

describe('parking', () => {
  const operator = (truth: MxOperator['truth']) => ({ name: 'x', title: 'X parking', truth })

  test.each<[string[], MxOperator['truth'], boolean]>([
    [['mx.a.test'], 'tells', false],
    [['mx.a.test'], 'parked', true],
    [['localhost'], 'tells', true],
    [['mx.example.com'], 'tells', true],
    // A sink beside a real exchanger is a backup against spam.
    [['mx.a.test', 'localhost'], 'tells', false],
    [[], 'tells', false],
  ])('%j with %s: %s', (hosts, truth, isParked) => {
    expect(findParkingSignals(hosts, operator(truth))).toHaveLength(isParked ? 1 : 0)
  })
})

describe('a network of misspelled domains', () => {
  const at = (host: string): ZoneEntry => ({ MX: [[10, host]] })
  const find = (records: Record<string, ZoneEntry>, domain = 'a.test') =>
    findNetworkSignals(zone(records), domain, { hosts: ['mx.trap.test'], signal })

  test('consists of misspellings that the suggestions recognize', () => {
    for (const name of TYPO_DOMAINS) expect(listedTypo(name), name).not.toBeNull()
    expect(new Set(TYPO_DOMAINS).size).toBe(TYPO_DOMAINS.length)
  })

  test(`needs ${NETWORK_MIN} that share the exchanger`, async () => {
    const one = { 'gmial.com': at('mx.trap.test'), 'gmai.com': at('mx.other.test') }
    expect(await find(one)).toEqual([])
    const [found] = await find({ ...one, 'hotmai.com': at('mx.trap.test') })
    expect(found).toMatchObject({
      shift: 20,
      detail: 'The mail exchanger also serves misspelled domains: gmial.com, hotmai.com.',
    })
  })

  test('does not count the domain itself, nor failed lookups', async () => {
    const two = { 'gmial.com': at('mx.trap.test'), 'gmai.com': at('mx.trap.test') }
    expect(await find(two, 'gmial.com')).toEqual([])
    expect(await find({ ...two, 'gmai.com': 'timeout' })).toEqual([])
  })
})
