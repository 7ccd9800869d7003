// Measures `ev bulk --sandbox` with a long list: parsing, storing and writing, without a network.
// node bench/bulk.ts [rows] [output options of ev bulk, such as --split --format ndjson]
// Compares `ev bulk` with a bare probe: node bench/bulk.ts --network [options of bench/engine.ts]
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createReadStream, createWriteStream, mkdtempSync, rmSync, statSync } from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { compareWithBareProbe } from './engine/compare.ts'
import { watchPeakRss } from './engine/process-usage.ts'

const outputOptions = process.argv.slice(2)
const rows = /^\d+$/.test(outputOptions[0] ?? '') ? Number(outputOptions.shift()) : 1_000_000
const ev = join(import.meta.dirname, '../bin/ev.js')
const dir = mkdtempSync(join(tmpdir(), 'ev-bulk-'))
const list = join(dir, 'list.csv')
const output = join(dir, 'out.csv')

if (outputOptions[0] === '--network') await compareWithBareProbe('bulk', outputOptions.slice(1))
else await measureSandbox()
rmSync(dir, { recursive: true, force: true })

async function measureSandbox() {
  await writeList()
  const startedAt = performance.now()
  const child = spawn(
    process.execPath,
    [
      ev,
      'bulk',
      list,
      '-o',
      output,
      '--sandbox',
      '--json',
      '--data-dir',
      join(dir, 'data'),
      ...outputOptions,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  )
  const peak = watchPeakRss(child)
  let printed = ''
  child.stdout.on('data', chunk => {
    printed += chunk
  })
  const [code] = await once(child, 'exit')
  const seconds = (performance.now() - startedAt) / 1_000
  const summary = code === 0 ? JSON.parse(printed) : null
  const files: { path: string; rows: number }[] = summary?.files ?? []
  const written = await Promise.all(files.map(file => countRows(file.path)))
  console.log(`| rows | options | seconds | rows/s | peak RSS | input | output |`)
  console.log(`|---|---|---|---|---|---|---|`)
  console.log(
    `| ${rows} | ${outputOptions.join(' ')} | ${seconds.toFixed(1)} | ${Math.round(rows / seconds)} | ` +
      `${Math.round(peak.bytes / 2 ** 20)} MB | ${megabytes(list)} MB | ` +
      `${files.map(file => `${megabytes(file.path)} MB`).join(' + ')} |`,
  )
  console.log(`\nNode ${process.versions.node}, ${availableParallelism()} cores`)
  const reported = files.map(file => file.rows)
  const expected = outputOptions.includes('--only') ? summary?.written : rows
  if (summary?.total !== rows || `${written}` !== `${reported}` || sum(written) !== expected) {
    console.error(
      `${rows} rows were read, ${summary?.total} counted, ${reported} reported, ${written} written`,
    )
    process.exitCode = 1
  }
}

async function writeList() {
  const stream = createWriteStream(list)
  stream.write('id,name,Email Address,note\n')
  const prefixes = ['valid', 'invalid', 'risky', 'catchall', 'role', 'user', 'info', 'ann']
  for (let n = 0; n < rows; n += 1_000) {
    const lines: string[] = []
    for (let i = n; i < Math.min(n + 1_000, rows); i++) {
      // One in a hundred addresses is a duplicate, one in fifty is malformed.
      const name = `${prefixes[i % prefixes.length]}${i % 100 === 99 ? i - 8 : i}`
      const address =
        i % 50 === 7
          ? `${name} at example.com`
          : `${name}@d${(i % 100 === 99 ? i - 8 : i) % 5_000}.example.com`
      lines.push(`${i},Name ${i},${address},"a, ""quoted"" note"\n`)
    }
    if (!stream.write(lines.join(''))) await once(stream, 'drain')
  }
  stream.end()
  await once(stream, 'close')
}

/** Counts lines, which are records, as the notes contain no line breaks. */
async function countRows(file: string): Promise<number> {
  let lines = 0
  for await (const _ of createInterface({ input: createReadStream(file) })) lines++
  // A header, nothing, or the brackets of the array.
  const others =
    { csv: 1, ndjson: 0, json: 2 }[outputOptions[outputOptions.indexOf('--format') + 1] ?? ''] ?? 1
  return lines - others
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((all, one) => all + one, 0)
}

function megabytes(file: string): number {
  return Math.round(statSync(file, { throwIfNoEntry: false })?.size ?? 0) >> 20
}
