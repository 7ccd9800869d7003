// A long list through `ev bulk --sandbox`: what reading, storing, resuming and writing cost, without any network.
// `node bench/bulk.ts [rows]`
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  createReadStream,
  createWriteStream,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
} from 'node:fs'
import { availableParallelism, tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'

const rows = Number(process.argv[2] ?? 1_000_000)
const ev = join(import.meta.dirname, '../bin/ev.js')
const dir = mkdtempSync(join(tmpdir(), 'ev-bulk-'))
const list = join(dir, 'list.csv')
const output = join(dir, 'out.csv')

await writeList()
const begunAt = performance.now()
const child = spawn(
  process.execPath,
  [ev, 'bulk', list, '-o', output, '--sandbox', '--json', '--data-dir', join(dir, 'data')],
  { stdio: ['ignore', 'pipe', 'inherit'] },
)
const peak = watchMemory(child)
let printed = ''
child.stdout.on('data', chunk => {
  printed += chunk
})
const [code] = await once(child, 'exit')
const seconds = (performance.now() - begunAt) / 1_000
const summary = code === 0 ? JSON.parse(printed) : null
const written = code === 0 ? await countRows() : 0
console.log(`| rows | seconds | rows/s | peak RSS | input | output |`)
console.log(`|---|---|---|---|---|---|`)
console.log(
  `| ${rows} | ${seconds.toFixed(1)} | ${Math.round(rows / seconds)} | ${Math.round(peak.bytes / 2 ** 20)} MB | ` +
    `${megabytes(list)} MB | ${megabytes(output)} MB |`,
)
console.log(`\nNode ${process.versions.node}, ${availableParallelism()} cores`)
rmSync(dir, { recursive: true, force: true })
if (summary?.total !== rows || written !== rows) {
  console.error(`${rows} rows went in, ${summary?.total} were counted, ${written} came out`)
  process.exitCode = 1
}

async function writeList() {
  const stream = createWriteStream(list)
  stream.write('id,name,Email Address,note\n')
  const prefixes = ['valid', 'invalid', 'risky', 'catchall', 'role', 'user', 'info', 'ann']
  for (let n = 0; n < rows; n += 1_000) {
    const lines: string[] = []
    for (let i = n; i < Math.min(n + 1_000, rows); i++) {
      // One in a hundred stands twice, one in fifty is no address.
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

/** The kernel's own high-water mark, read until the process is gone. */
function watchMemory({ pid }: ChildProcess) {
  const peak = { bytes: 0 }
  const timer = setInterval(() => {
    try {
      const status = readFileSync(`/proc/${pid}/status`, 'utf8')
      peak.bytes = Math.max(peak.bytes, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) * 1_024)
    } catch {
      clearInterval(timer)
    }
  }, 200)
  return peak
}

/** Records, not lines: the notes hold no line breaks. */
async function countRows(): Promise<number> {
  let lines = 0
  for await (const _ of createInterface({ input: createReadStream(output) })) lines++
  return lines - 1
}

function megabytes(file: string): number {
  return Math.round(statSync(file, { throwIfNoEntry: false })?.size ?? 0) >> 20
}
