import fs from 'node:fs'
import { open } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { onTestFinished } from 'vitest'
import type { Calls } from './nth-call.ts'
import { replaceMethod } from './replace-method.ts'

type Method = (this: unknown, ...args: unknown[]) => unknown

/** The file system, whose calls for files below a folder are counted. */
export type FileWatch = {
  /** The calls of the run; null between runs. */
  calls: Calls | null
  readonly folder: string
}

const diskError = () => Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })

const SYNC = [
  ...['openSync', 'readFileSync', 'writeFileSync', 'statSync', 'readdirSync'],
  ...['renameSync', 'mkdirSync', 'rmSync', 'realpathSync'],
]
const PROMISES = ['open', 'rm', 'rename', 'stat', 'readdir', 'readFile', 'writeFile']
const HANDLE = ['appendFile', 'read', 'readFile', 'stat', 'sync', 'write', 'writeFile', 'close']
/** Of streams, on file descriptors. */
const DESCRIPTOR = ['read', 'write', 'writev', 'fsync', 'close']

/** Counts the calls for files below a folder, and makes one of them fail as if the disk had failed. */
export async function watchFiles(watch: FileWatch): Promise<void> {
  const handles = new WeakSet<object>()
  const descriptors = new Set<unknown>()
  // Runs after the methods are restored, as it was registered before them.
  onTestFinished(syncBuiltinESMExports)
  const isInside = (path: unknown) => typeof path === 'string' && path.startsWith(watch.folder)

  for (const name of SYNC) {
    replaceMethod(fs, name, original => callSync(watch, name, original, args => isInside(args[0])))
  }
  for (const name of PROMISES) {
    replaceMethod(fs.promises, name, original =>
      callAsync(
        watch,
        name,
        original,
        (_, args) => isInside(args[0]),
        opened => {
          if (name === 'open') handles.add(opened as object)
        },
      ),
    )
  }
  const probe = await open(import.meta.filename)
  const handle = Object.getPrototypeOf(probe) as object
  await probe.close()
  for (const name of HANDLE) {
    replaceMethod(handle, name, original =>
      callAsync(watch, `handle.${name}`, original, self => handles.has(self as object)),
    )
  }
  replaceMethod(fs, 'open', original =>
    callBack(
      watch,
      'open',
      original,
      args => isInside(args[0]),
      fd => descriptors.add(fd),
    ),
  )
  for (const name of DESCRIPTOR) {
    replaceMethod(fs, name, original =>
      callBack(watch, name, original, args => descriptors.has(args[0])),
    )
  }
  syncBuiltinESMExports()
}

const describe = (name: string, path: unknown) => `${name} ${typeof path === 'string' ? path : ''}`

/** A close that fails has closed the file. */
const hasEffect = (name: string, way: string) => way === 'lost' || name.endsWith('close')

const callSync = (
  watch: FileWatch,
  name: string,
  original: Method,
  isCounted: (args: readonly unknown[]) => boolean,
): Method =>
  function (...args) {
    const way =
      watch.calls !== null && isCounted(args)
        ? watch.calls.take('file', describe(name, args[0]))
        : null
    if (way === 'refused') throw diskError()
    const result = original.apply(this, args)
    if (way !== null) throw diskError()
    return result
  }

const callAsync = (
  watch: FileWatch,
  name: string,
  original: Method,
  isCounted: (self: unknown, args: readonly unknown[]) => boolean,
  onDone: (result: unknown) => void = () => {},
): Method =>
  async function (...args) {
    const { calls } = watch
    if (calls === null || !isCounted(this, args)) return original.apply(this, args)
    const way = calls.take('file', describe(name, args[0]))
    if (way !== null && !hasEffect(name, way)) throw diskError()
    calls.inFlight++
    try {
      const result = await original.apply(this, args)
      // A file that was opened and whose answer was lost is nobody's to close.
      if (way !== null && name === 'open') await (result as fs.promises.FileHandle).close()
      if (way !== null) throw diskError()
      onDone(result)
      return result
    } finally {
      calls.inFlight--
    }
  }

const callBack = (
  watch: FileWatch,
  name: string,
  original: Method,
  isCounted: (args: readonly unknown[]) => boolean,
  onDone: (result: unknown) => void = () => {},
): Method =>
  function (...args) {
    const { calls } = watch
    const callback = args.at(-1)
    if (calls === null || typeof callback !== 'function' || !isCounted(args))
      return original.apply(this, args)
    const way = calls.take('file', describe(name, args[0]))
    if (way !== null && !hasEffect(name, way)) return void setImmediate(() => callback(diskError()))
    calls.inFlight++
    const done = (error: unknown, ...results: unknown[]) => {
      calls.inFlight--
      if (error === null && way === null) onDone(results[0])
      if (way !== null && name === 'open') fs.closeSync(results[0] as number)
      if (way === null) callback(error, ...results)
      else callback(diskError())
    }
    return original.apply(this, [...args.slice(0, -1), done])
  }
