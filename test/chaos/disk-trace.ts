import { readFileSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'

/** A system call that changes a file, or bytes that go to a socket. */
type Call = {
  readonly name: string
  /** Path of a file, or `socket:[n]`. */
  readonly target: string
  readonly bytes: Buffer
  /** Offset in the file; for `ftruncate`, the new length. */
  readonly offset: number
  /** Lines of the log at which the call starts and ends. */
  readonly from: number
  readonly to: number
}

/**
 * Returns the successful calls in a log of `STRACE`. A file changes when its call ends; bytes are
 * sent to a socket when the call starts.
 */
export function readTrace(file: string): Call[] {
  const started = new Map<string, { readonly text: string; readonly from: number }>()
  const calls: Call[] = []
  for (const [to, line] of readFileSync(file, 'latin1').split('\n').entries()) {
    const [, pid = '', rest = ''] = /^(\d+)\s+(.*)$/.exec(line) ?? []
    const cutOff = /^(.*) <unfinished \.\.\.>$/.exec(rest)?.[1]
    if (cutOff !== undefined) {
      started.set(pid, { text: cutOff, from: to })
      continue
    }
    const resumed = /^<\.\.\. \w+ resumed>(.*)$/.exec(rest)?.[1]
    const before = resumed === undefined ? undefined : started.get(pid)
    const call = parseCall((before?.text ?? '') + (resumed ?? rest))
    if (call !== null) calls.push({ ...call, from: before?.from ?? to, to })
  }
  const timeOf = ({ target, from, to }: Call) => (isSocket(target) ? from : to)
  return calls.toSorted((a, b) => timeOf(a) - timeOf(b))
}

export const isSocket = (target: string) => target.startsWith('socket:')

/** Options of strace for a log that `readTrace` parses; `-D` keeps the program a direct child. */
export const STRACE = [
  ...['-D', '-f', '--seccomp-bpf', '-y', '-xx', '-s', '10000000'],
  ...['-e', 'trace=pwrite64,ftruncate,fsync,fdatasync,write,writev', '-e', 'signal=kill'],
]

function parseCall(text: string): Omit<Call, 'from' | 'to'> | null {
  const [, name = '', target = '', rest = '', result = ''] =
    /^(\w+)\(\d+<([^>]*)>(.*)\)\s+= (-?\d+)/.exec(text) ?? []
  if (name === '' || result.startsWith('-')) return null
  const chunks = [...rest.matchAll(/"((?:\\x[0-9a-f]{2})*)"/g)].map(([, hex = '']) =>
    Buffer.from(hex.replaceAll('\\x', ''), 'hex'),
  )
  // `-xx` also escapes paths.
  const path = target.replace(/\\x([0-9a-f]{2})/g, (_, hex) =>
    String.fromCharCode(parseInt(hex, 16)),
  )
  return {
    name,
    target: path,
    bytes: Buffer.concat(chunks),
    offset: Number(/(\d+)$/.exec(rest)?.[1]),
  }
}

/** The durable contents of the files of a folder, and the writes that are not synced yet. */
export class Disk {
  readonly #durable = new Map<string, Buffer>()
  #pending: Call[] = []

  apply(call: Call): void {
    const { name, target, from } = call
    if (name === 'pwrite64' || name === 'ftruncate') this.#pending.push(call)
    if (name !== 'fsync' && name !== 'fdatasync') return
    // An fsync may miss writes that run at the same time.
    const isDurable = (one: Call) => one.target === target && one.to < from
    for (const one of this.#pending.filter(isDurable)) change(this.#durable, one)
    this.#pending = this.#pending.filter(one => !isDurable(one))
  }

  /** Writes the files as a power cut may leave them: with the pending writes `survives` selects. */
  writeTo(folder: string, survives: () => boolean): void {
    const files = new Map([...this.#durable].map(([path, bytes]) => [path, Buffer.from(bytes)]))
    for (const call of this.#pending) if (survives()) change(files, call)
    for (const [path, bytes] of files) writeFileSync(join(folder, basename(path)), bytes)
  }
}

function change(files: Map<string, Buffer>, { name, target, bytes, offset }: Call): void {
  const before = files.get(target) ?? Buffer.alloc(0)
  const length = name === 'ftruncate' ? offset : Math.max(before.length, offset + bytes.length)
  const after = length === before.length ? before : Buffer.alloc(length)
  if (after !== before) before.copy(after, 0, 0, Math.min(length, before.length))
  if (name === 'pwrite64') bytes.copy(after, offset)
  files.set(target, after)
}
