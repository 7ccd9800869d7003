import { onTestFinished } from 'vitest'

type Method = (this: unknown, ...args: unknown[]) => unknown

/** Replaces a method of an object until the end of the test. */
export function replaceMethod(
  owner: object,
  name: string,
  replace: (original: Method) => Method,
): void {
  const methods = owner as Record<string, Method>
  const isOwn = Object.hasOwn(owner, name)
  const original = methods[name] as Method
  methods[name] = replace(original)
  onTestFinished(() => {
    if (isOwn) methods[name] = original
    else delete methods[name]
  })
}
