import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { emptyFolder, runEv } from '../../support/cli.ts'
import { rowsIn } from '../../support/csv.ts'

/** Runs `ev bulk --sandbox` for a list of customers, and returns the folder. */
async function bulk(args: readonly string[], list = 'name,mail\nAnn,valid1@x.example\n') {
  const home = emptyFolder()
  writeFileSync(join(home, 'list.csv'), list)
  const run = await runEv(['bulk', 'list.csv', '--sandbox', '--data-dir', 'data', ...args], {
    home,
  })
  return { run, output: join(home, 'list.verified.csv') }
}

describe.concurrent('ev bulk --vocabulary', () => {
  test.each([
    [
      'zerobounce',
      'name,mail,ZB Status,ZB Sub Status,ZB Account,ZB Domain,ZB First Name,ZB Last Name,ZB Gender,ZB Free Email,ZB MX Found,ZB MX Record,ZB SMTP Provider,ZB Did You Mean,checked_by',
      'Ann,valid1@x.example,valid,,valid1,x.example,,,,False,true,,,,sandbox',
    ],
    [
      'neverbounce',
      'name,mail,bad_syntax,free_email_host,role_account,addr,alias,host,subdomain,domain,tld,fqdn,network,has_dns_info,has_mail_server,mail_server_reachable,email_status_int,email_status,checked_by',
      'Ann,valid1@x.example,0,0,0,valid1,,x.example,,,,x.example,,1,1,,0,valid,sandbox',
    ],
    [
      'kickbox',
      'name,mail,result,reason,role,free,disposable,accept_all,did_you_mean,sendex,user,domain,success,message,checked_by',
      'Ann,valid1@x.example,deliverable,accepted_email,false,false,false,false,,,valid1,x.example,true,,sandbox',
    ],
    [
      'reacher',
      'name,mail,is_reachable,misc.is_disposable,misc.is_role_account,misc.gravatar_url,mx.accepts_mail,smtp.can_connect,smtp.has_full_inbox,smtp.is_catch_all,smtp.is_deliverable,smtp.is_disabled,syntax.is_valid_syntax,syntax.domain,syntax.username,error,checked_by',
      'Ann,valid1@x.example,safe,false,false,,true,true,false,false,true,false,true,x.example,valid1,,sandbox',
    ],
  ])('%s writes its columns and words after those of the list', async (name, header, row) => {
    const { run, output } = await bulk(['--vocabulary', name])
    expect(run.code).toBe(0)
    expect(readFileSync(output, 'utf8')).toBe(`${header}\n${row}\n`)
  })

  test('names the address where a row of the list has several', async () => {
    const { output } = await bulk(
      ['--vocabulary', 'zerobounce', '--all-addresses'],
      'email,second email\nvalid1@x.example,invalid1@x.example\n',
    )
    const rows = rowsIn(output)
    expect(rows.map(row => [row['Email Address'], row['ZB Status']])).toEqual([
      ['valid1@x.example', 'valid'],
      ['invalid1@x.example', 'invalid'],
    ])
  })

  test('does not apply to JSON, which it says before any work', async () => {
    const { run } = await bulk(['--vocabulary', 'kickbox', '-o', 'out.ndjson'])
    expect(run.code).toBe(64)
    expect(run.stderr).toContain('--vocabulary sets the columns of csv and xlsx')
  })
})
