// Adapter of `ev measure` for @emailcheck/email-validator-js, whose `validSmtp` is true, false or
// null: ev measure truth.csv --tool 'js=node tools/measure/email-validator-js.mjs FOLDER'
// where FOLDER has the package: npm install @emailcheck/email-validator-js

import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { run } from './adapter.mjs'

const load = createRequire(resolve(process.argv[2] ?? '.', 'package.json'))
const { verifyEmail } = load('@emailcheck/email-validator-js')

await run(async emailAddress => {
  const result = await verifyEmail({ emailAddress, verifyMx: true, verifySmtp: true })
  if (result.validFormat === false || result.validMx === false) return 'undeliverable'
  if (result.validSmtp === null || result.validSmtp === undefined) return 'unknown'
  if (result.isCatchAll === true) return 'risky'
  return result.validSmtp ? 'deliverable' : 'undeliverable'
})
