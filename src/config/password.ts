/** A URL for people: whoever may see it may not see the password in it. */
export const withoutPassword = (url: string): string =>
  url.replace(/^([a-z0-9+.-]+:\/\/).*@/is, '$1…@').replace(/([?&](?:ssl)?password=)[^&#]*/gi, '$1…')

/** Whether a password stands in it: before the host, or as PostgreSQL takes it too, after the question mark. */
export function hasPassword(url: string): boolean {
  if (!URL.canParse(url)) return false
  const { password, searchParams } = new URL(url)
  return password !== '' || searchParams.has('password') || searchParams.has('sslpassword')
}
