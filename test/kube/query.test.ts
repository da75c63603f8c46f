import * as fc from "fast-check";
import { suite } from "uvu";
import * as assert from "uvu/assert";
import { firstValue, flagIn, unescape, withoutQueryValues } from "../../src/kube/query.ts";
import { goParseQuery } from "../support/request-info.ts";

const test = suite("kube/query");

test("escapes become the bytes they name, and a broken one spoils the text", () => {
  assert.is(unescape("/api/v1", "+"), "/api/v1");
  assert.is(unescape("%2fa%2Fb%25%00%ff", "+"), "/a/b%\0\xff");
  for (const broken of ["%", "a%", "%4", "%zz", "%4g", "%%41", "%41%4", "% 1", "%+1", "%\xff1"])
    assert.is(unescape(broken, "+"), undefined, broken);
});

test("a plus is a blank in a query only, and an escaped plus stays a plus", () => {
  assert.is(unescape("a+b%2bc", "+"), "a+b+c");
  assert.is(unescape("a+b%2bc", " "), "a b+c");
  assert.is(unescape("a+b", " "), "a b");
});

test("if a query parameter has several values, the first value counts, even if it is empty (row 23)", () => {
  assert.is(firstValue("watch=1&watch=0", "watch"), "1");
  assert.is(firstValue("limit=5&watch&watch=1", "watch"), "");
  assert.is(firstValue("watch==", "watch"), "=");
});

test("pairs that the apiserver skips do not count as the first", () => {
  assert.is(firstValue("watch=%&watch=a;b&watch;=c&watch=d", "watch"), "d");
  assert.is(firstValue("watch=%zz", "watch"), undefined);
});

test("a key is compared after its escapes are undone, and with its case", () => {
  assert.is(firstValue("%77%61tch=1", "watch"), "1");
  for (const query of ["Watch=1", "watchx=1", "watc=1", "wat+ch=1", "watch%3D1", "=watch", "%77atc%6", ""])
    assert.is(firstValue(query, "watch"), undefined, query);
});

test("a flag is set by anything but 0 and false, in any case, as Go folds it", () => {
  for (const value of ["", "=", "=1", "=no", "=TRUE", "=00", "=false%20", "=+", "=f"])
    assert.is(flagIn(`a=b&watch${value}`, "watch"), true, value);
  for (const value of ["=0", "=false", "=FALSE", "=%66alse", "=fal%C5%BFe", "=0&watch=1"])
    assert.is(flagIn(`watch${value}`, "watch"), false, value);
  for (const query of ["", "Watch=1", "watching=1", "watch;=1", "watch=%zz"])
    assert.is(flagIn(query, "watch"), undefined, query);
});

test("it reads random queries as net/url does", () => {
  const piece = fc.constantFrom(..."watch=&;%+0 7f61".split(""), "watch", "watch=", "&watch=", "%77", "%61");
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 24 }), (pieces) => {
      const query = pieces.join("");
      assert.is(firstValue(query, "watch"), goParseQuery(query).get("watch")?.[0], query);
    }),
    { numRuns: 20_000 },
  );
});

test("the values of keys that are not Kubernetes' own are hidden, in every spelling (A55)", () => {
  const secret = "c2VjcmV0LXZhbHVl";
  const keys = [
    "token access_token id_token refresh_token password passwd secret client_secret apikey to%6ben",
    "%74oken id%5Ftoken TOKEN Token x auth jwt sig X-Amz-Signature code command continue path key",
    "credential session lab%65lSelector watch%3dtrue",
  ].flatMap((some) => some.split(" "));

  for (const key of keys)
    for (const target of [
      `/api/v1/pods?${key}=${secret}`,
      `/api/v1/pods?watch=1&${key}=${secret}`,
      `/api/v1/pods?watch=1;${key}=${secret}&limit=5`,
      `/api/v1/pods?watch=1?${key}=${secret}`,
      `/api/v1/pods?labelSelector=a%3Db&${key}=${secret}#x`,
    ])
      assert.not.match(withoutQueryValues(target), secret, target);
  const own =
    "/api/v1/pods?watch=true&resourceVersion=5&labelSelector=app%3Dweb,x!=y&fieldSelector=a=b&timeoutSeconds=9";
  assert.is(withoutQueryValues(own), own);
  assert.is(withoutQueryValues("Is it? Yes; a=b & c"), "Is it? Yes; a=b & c", "prose is no query");
});

test.run();
