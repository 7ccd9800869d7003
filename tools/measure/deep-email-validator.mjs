// Adapter of `ev measure` for deep-email-validator, which says valid or not, and why:
// ev measure truth.csv --tool 'deep=node tools/measure/deep-email-validator.mjs FOLDER'
// where FOLDER has the package: npm install deep-email-validator

import { createRequire } from 'node:module'
import { resolve } from 'node:path'
import { run } from './adapter.mjs'

const load = createRequire(resolve(process.argv[2] ?? '.', 'package.json'))
const { validate } = load('deep-email-validator')

// It has no word for "unknown": what it says is taken literally.
await run(async email => {
  const { valid } = await validate({ email, validateTypo: false })
  return valid ? 'deliverable' : 'undeliverable'
})
