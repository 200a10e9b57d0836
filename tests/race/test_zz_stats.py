from collections import Counter
from tests.race import test_stateful as t
from tests.race.model import Hall
from tests.conftest import *
C=Counter()
def wrap(name):
    f=getattr(Hall,name)
    def g(self,*a,**k):
        r=f(self,*a,**k); C[name, r if isinstance(r,(str,bool)) else 'ok']+=1; return r
    setattr(Hall,name,g)
for n in ("hold","lock","release","extend","unlock","sale","direct_sale","revert","block","unblock"): wrap(n)
def test_s(database):
    with t.world(database) as w:
        t.run_histories(w)
    for k,v in sorted(C.items()): print(k,v)
