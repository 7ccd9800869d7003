import { describe, expect, test } from 'vitest'
import type { ExternalReason } from '../../src/engine/verdict/external.ts'
import type { ExternalSource } from '../../src/engine/verdict/verdict.ts'
import {
  findExternalColumns,
  parseCheckTime,
  readExternal,
} from '../../src/formats/vocabulary/read-external.ts'
import { dialectOf } from '../support/csv.ts'

/** Reads the result of the first row of a list. */
function read(header: string, row: string) {
  const columns = findExternalColumns(dialectOf(`${header}\n${row}\n`))
  return columns === null ? null : readExternal(columns, row.split(','))
}

/** The columns of exports, as the services document them or write them in their SDKs. */
const ZEROBOUNCE =
  'Email Address,ZB Status,ZB Sub Status,ZB Account,ZB Domain,ZB First Name,ZB Last Name,ZB Gender,ZB Free Email,ZB MX Found,ZB MX Record,ZB SMTP Provider,ZB Did You Mean'
const NEVERBOUNCE = 'email,free_email_host,role_account,has_mail_server,email_status'
const KICKBOX = 'email,result,reason,role,free,disposable,accept_all,did_you_mean,sendex'
const REACHER = 'input,is_reachable,misc.is_disposable,misc.is_role_account'
const EV = 'email,ev_class,ev_action,ev_reason,ev_checked_at,ev_simulated,ev_checked_by'

const ROWS: readonly (readonly [
  source: ExternalSource,
  header: string,
  row: string,
  reason: ExternalReason,
])[] = [
  ['zerobounce', ZEROBOUNCE, 'a@x.test,valid,', 'external_deliverable'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,invalid,mailbox_not_found', 'external_undeliverable'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,catch-all,', 'external_risky'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,Catch-All,', 'external_risky'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,unknown,greylisted', 'external_unknown'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,spamtrap,', 'external_do_not_mail'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,abuse,', 'external_do_not_mail'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,do_not_mail,disposable', 'external_do_not_mail'],
  ['zerobounce', ZEROBOUNCE, 'a@x.test,do_not_mail,role_based', 'external_risky'],
  ['zerobounce', 'email,status,sub_status', 'a@x.test,valid,', 'external_deliverable'],
  ['neverbounce', NEVERBOUNCE, 'a@x.test,0,0,1,valid', 'external_deliverable'],
  ['neverbounce', NEVERBOUNCE, 'a@x.test,0,0,1,catchall', 'external_risky'],
  ['neverbounce', NEVERBOUNCE, 'a@x.test,0,0,1,disposable', 'external_do_not_mail'],
  ['neverbounce', NEVERBOUNCE, 'a@x.test,0,0,1,unknown', 'external_unknown'],
  ['kickbox', KICKBOX, 'a@x.test,deliverable,accepted_email,false', 'external_deliverable'],
  ['kickbox', KICKBOX, 'a@x.test,risky,low_quality,,,true,', 'external_do_not_mail'],
  ['kickbox', KICKBOX, 'a@x.test,risky,low_deliverability,,,false,true', 'external_risky'],
  ['kickbox', 'email,Kickbox Result', 'a@x.test,undeliverable', 'external_undeliverable'],
  ['reacher', REACHER, 'a@x.test,safe,false', 'external_deliverable'],
  ['reacher', REACHER, 'a@x.test,risky,true', 'external_do_not_mail'],
  ['ev', EV, 'a@x.test,risky,suppress,spam_trap', 'external_do_not_mail'],
  ['ev', EV, 'a@x.test,risky,send_with_care,catch_all', 'external_risky'],
]

describe('the result of a row', () => {
  test.each(ROWS)('of %s in "%s", %s, is %s', (by, header, row, reason) => {
    expect(read(header, row)).toMatchObject({ by, reason })
  })

  test('of an export of ev is that of the service that it came from', () => {
    const row = 'a@x.test,deliverable,send,external_deliverable,2026-03-01,false,zerobounce'
    expect(read(EV, row)).toMatchObject({ by: 'zerobounce' })
  })

  test.each([
    ['a word that is not known', NEVERBOUNCE, 'a@x.test,0,0,1,fine'],
    ['no word', NEVERBOUNCE, 'a@x.test,0,0,1,'],
    ['a number in place of a word', NEVERBOUNCE, 'a@x.test,0,0,1,0'],
    ['a simulated result', EV, 'a@x.test,deliverable,send,accepted_email,2026-03-01,true,sandbox'],
    [
      'a simulated one as ZeroBounce',
      `${ZEROBOUNCE},checked_by`,
      'a@x.test,valid,,,,,,,,,,,,sandbox',
    ],
  ])('does not exist for %s', (_, header, row) => {
    expect(read(header, row)).toBeNull()
  })

  test.each(['email,status', 'email,result', 'email,class,reason', 'email,reason,sendex', 'email'])(
    'does not exist in a list with the columns %s',
    header => {
      expect(findExternalColumns(dialectOf(`${header}\na@x.test\n`))).toBeNull()
    },
  )
})

describe('the time of a check', () => {
  test.each([
    ['2026-03-01', '2026-03-01T00:00:00.000Z'],
    ['2023-07-20 17:10:08.083', '2023-07-20T17:10:08.083Z'],
    ['2026-03-01 14:30', '2026-03-01T14:30:00.000Z'],
    ['2026-03-01T14:30:00Z', '2026-03-01T14:30:00.000Z'],
    ['2026-03-01T14:30:00+02:00', '2026-03-01T12:30:00.000Z'],
    ['2026-03-01 14:30:00 UTC', '2026-03-01T14:30:00.000Z'],
  ])('is read from %s', (text, time) => {
    expect(new Date(parseCheckTime(text) ?? 0).toISOString()).toBe(time)
  })

  test.each(['03/04/2026', '1.3.2026', '2026-13-01', 'March 2026', '1772323200', '', 'n/a'])(
    'is not guessed from "%s"',
    text => {
      expect(parseCheckTime(text)).toBeNull()
    },
  )
})
